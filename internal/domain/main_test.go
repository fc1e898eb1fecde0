package domain_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/driftsafe/terraform-provider-libvirt/internal/acctest/lab"
	"github.com/driftsafe/terraform-provider-libvirt/internal/provider"
)

func TestMain(m *testing.M) {
	lab.Main(m, func() tfprotov6.ProviderServer { return provider.NewServer("test") })
}
