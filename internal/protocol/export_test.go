package protocol

import "github.com/hashicorp/terraform-plugin-go/tfprotov6"

// What the acceptance tests use of the resource in memory. They are a package
// of their own because internal/acctest imports the provider, and with it this
// package.

type Machines = machines

func NewMachines() *Machines { return newMachines() }

func NewMachineServer(m *Machines) tfprotov6.ProviderServer {
	return NewServer(newFallback(), []Resource{m}, []DataSource{&machineData{of: m}})
}
