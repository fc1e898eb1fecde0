package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// newIgnition makes libvirt_ignition: a configuration for Ignition, as a file or
// on a drive.
func newIgnition() resource.Resource { return &stored{kind: ignitionKind} }

var ignitionKind = storedKind{
	typeName: "ignition",
	noun:     "Ignition configuration",
	file:     "file",
	schema:   ignitionSchema,
	model:    func() storedModel { return new(ignitionModel) },
	load: func(file string) (storedModel, error) {
		t, err := loadText(file, seed.LabelIgnition, seed.FileIgnition)
		return &ignitionModel{storedText: t}, err
	},
	importHelp: "The identifier is the absolute path of a configuration, or of the image of a drive with one, or NAME=PATH, for example web-1=/var/lib/libvirt/images/web-1.ign. " + importTextHelp,
}

// ignitionModel is an Ignition configuration in configuration, plan and state.
type ignitionModel struct{ storedText }

func (m *ignitionModel) inputs() []storedInput { return m.texts(seed.CheckIgnition) }

func (m *ignitionModel) content() seed.Content {
	if m.onDrive() {
		return seed.IgnitionDrive(m.Content.ValueString())
	}
	return seed.Ignition(m.Content.ValueString())
}

func ignitionSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "An [Ignition](https://coreos.github.io/ignition/) configuration, which sets up a machine of Fedora CoreOS, RHEL CoreOS, Flatcar, openSUSE MicroOS or SLE Micro at its first boot.\n\n" +
			storedTextDescription +
			"How a guest finds it:\n\n" +
			"- By QEMU's `fw_cfg` under the name `opt/com.coreos/config` (Flatcar: `opt/org.flatcar-linux/config`), on x86-64 and ARM: all of these systems. " +
			storedTextFwCfg +
			"- On a `virtio` disk with the serial `ignition`, on s390x and ppc64le, where there is no `fw_cfg`: Fedora CoreOS and RHEL CoreOS. The volume is the same.\n" +
			"- In a drive with the label `ignition`: openSUSE MicroOS and SLE Micro. Set `format = \"iso\"`, and put the volume into a CD drive.\n\n" +
			"Ignition acts at the first boot only: another configuration reaches the volume in place, and a machine only when it is made anew.\n\n" +
			"What Ignition would refuse for certain is refused in the plan, with line and column: JSON that does not parse, and an `ignition.version` that no release knows. " +
			"Inputs that an object has already are not complained about.",
		Attributes: storedTextAttributes("the configuration",
			"The configuration, which is JSON: from `jsonencode()`, from Butane, or from a data source such as `ct_config`. "+
				"It must have an `ignition.version` of the families 2.x or 3.x; which of them a machine takes depends on its release.",
			"`raw`, which is the default, for a file with the configuration as it is; `iso` for the image of a drive with the label `ignition` and the file `ignition/config.ign`."),
	}
}
