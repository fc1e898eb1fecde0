package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/driftsafe/terraform-provider-libvirt/internal/seed"
)

// newCombustion makes libvirt_combustion: a script for Combustion, as a file or
// on a drive.
func newCombustion() resource.Resource { return &stored{kind: combustionKind} }

var combustionKind = storedKind{
	typeName: "combustion",
	noun:     "Combustion script",
	file:     "file",
	schema:   combustionSchema,
	model:    func() storedModel { return new(combustionModel) },
	load: func(file string) (storedModel, error) {
		t, err := loadText(file, seed.LabelCombustion, seed.FileCombustion)
		return &combustionModel{storedText: t}, err
	},
	importHelp: "The identifier is the absolute path of a script, or of the image of a drive with one, or NAME=PATH, for example web-1=/var/lib/libvirt/images/web-1.sh. " + importTextHelp,
}

// combustionModel is a script for Combustion in configuration, plan and state.
type combustionModel struct{ storedText }

func (m *combustionModel) inputs() []storedInput { return m.texts(seed.CheckCombustion) }

func (m *combustionModel) content() seed.Content {
	if m.onDrive() {
		return seed.CombustionDrive(m.Content.ValueString())
	}
	return seed.Combustion(m.Content.ValueString())
}

func combustionSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A script for [Combustion](https://github.com/openSUSE/combustion), which sets up a machine of openSUSE MicroOS, Leap Micro or SLE Micro at its first boot.\n\n" +
			storedTextDescription +
			"How a guest finds it:\n\n" +
			"- By QEMU's `fw_cfg` under the name `opt/org.opensuse.combustion/script`. " +
			storedTextFwCfg +
			"- In a drive with the label `combustion`, as the file `combustion/script`: set `format = \"iso\"`, and put the volume into a CD drive.\n\n" +
			"A script as it is, on a disk, is not found by any guest. Combustion acts at the first boot only: another script reaches the volume in place, and a machine only when it is made anew. A machine may have an Ignition configuration beside it.\n\n" +
			"What could not be run for certain is refused in the plan, with line and column: an interpreter that is not found, a text that is for cloud-init. " +
			"Markers that Combustion would not recognise are warned of. Inputs that an object has already are not complained about.",
		Attributes: storedTextAttributes("the script",
			"The script. It begins with `#!` and an absolute path. A line `# combustion: network` says that it needs the network, `# combustion: prepare` that it is called with `--prepare` before, too.",
			"`raw`, which is the default, for a file with the script as it is; `iso` for the image of a drive with the label `combustion` and the file `combustion/script`."),
	}
}
