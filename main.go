// Command terraform-provider-libvirt serves the provider to OpenTofu and
// Terraform. With -debug it waits for a debugger and prints how to attach it.
package main

import (
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/driftsafe/terraform-provider-libvirt/internal/provider"
)

// version is set by the release build.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger")
	flag.Parse()
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	serve := func() tfprotov6.ProviderServer { return provider.NewServer(version) }
	if err := tf6server.Serve(provider.Address, serve, options...); err != nil {
		log.Fatal(err)
	}
}
