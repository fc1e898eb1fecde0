package domain

import (
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/spec"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// Attributes that speak to the provider and are not on the host.
var settings = map[string]bool{
	"create": true, "destroy": true, "update": true, "protect": true, "adopt": true, "change": true, "status": true,
	"devices.interfaces[].wait_for_ip": true,
}

func isSetting(pattern string) bool { return settings[pattern] }

// Values that libvirt chooses when none is given, and that people refer to.
var chosen = map[string]bool{
	"id": true, "uuid": true, "devices.interfaces[].mac.address": true,
}

func isChosen(pattern string) bool { return chosen[pattern] }

func optional(name string, typ *tree.Type, text string) *tree.Attribute {
	return &tree.Attribute{Name: name, Type: typ, Optional: true, Description: text}
}

func reported(name string, typ *tree.Type, text string) *tree.Attribute {
	return &tree.Attribute{Name: name, Type: typ, Computed: true, Description: text}
}

// resourceType is the XML's type with what is kept beside the XML, and the
// settings.
func resourceType() *tree.Type {
	root := spec.Domain().Type()
	attrs := make([]*tree.Attribute, 0, len(root.Attrs)+16)
	for name, a := range root.Attrs {
		switch name {
		case "name", "type":
			a = &tree.Attribute{Name: name, Type: a.Type, Required: true, Description: a.Description}
		case "id":
			a = &tree.Attribute{Name: name, Type: a.Type, Computed: true, Description: "Number of the running guest, null while it is off. It changes at every start and identifies nothing: use `uuid`."}
		case "devices":
			a = &tree.Attribute{Name: name, Type: devicesType(a.Type), Optional: true, Computed: true, Description: a.Description}
		}
		attrs = append(attrs, a)
	}
	onHost := func(name, text string) *tree.Attribute {
		return &tree.Attribute{Name: name, Type: tree.BoolType, Optional: true, Computed: true, Description: text}
	}
	flag := func(name, text string) *tree.Attribute { return optional(name, tree.BoolType, text) }
	shutdown := func(text string, more ...*tree.Attribute) *tree.Attribute {
		timeout := optional("timeout", tree.NumberType, "Seconds to wait for the guest. Standard: 300.")
		return optional("shutdown", tree.ObjectOf(append(more, timeout)...), text)
	}
	attrs = append(attrs, extraType(),
		onHost("autostart", "Whether the host starts the domain when it boots. Read from the host; changing it never touches the guest."),
		onHost("running", "Whether the guest runs. Unset leaves the power alone. `true` starts it, from its managed save if it has one; one that is paused or suspended runs, and stays so. `false` shuts it down in order within `update.shutdown.timeout` (effect `shutdown`), whatever `update.allow` says: one that does not react is left running and the apply fails, unless `update.shutdown.force` has it stopped hard. Somebody's start or stop is put back by the next apply."),
		optional("create", tree.ObjectOf(
			flag("paused", "Start paused."), flag("autodestroy", "Destroy the guest when the connection closes."),
			flag("bypass_cache", "Avoid the host's page cache when restoring."), flag("force_boot", "Discard a managed save."),
			flag("validate", "Validate the XML against libvirt's schema."), flag("reset_nvram", "Reset the UEFI variables from their template."),
		), "Flags for the first start. They act once, at creation."),
		optional("destroy", tree.ObjectOf(
			flag("graceful", "Only shut down in order; if the guest does not react within the timeout, the destroy fails."),
			shutdown("How long a destroy waits for the guest to shut down in order before it stops it hard."),
			flag("delete_snapshots", "Destroy the domain though it has snapshots. libvirt's records of them go, and no image: snapshots inside a qcow2 image stay there (`qemu-img snapshot -l`), and so do the files of external ones, overlays and saved memory. Unset, such a domain is not destroyed, and the error lists them."),
			flag("delete_checkpoints", "Destroy the domain though it has checkpoints. libvirt's records of them go; their bitmaps stay in the images (`qemu-img info`), and the next backup has to be a full one. Unset, such a domain is not destroyed, and the error lists them."),
			flag("delete_managed_save", "Destroy the domain though it has a managed save: the file goes, with what the guest had in its memory. Unset, such a domain is not destroyed."),
		), "How the domain is destroyed (see the guide on what a destroy checks). What is set here counts once it is applied, which touches nothing on the host. The disks' images always stay; the UEFI variables go if they are in libvirt's own directory and nobody else names them, and so does the state of an emulated TPM that is not `persistent_state`."),
		optional("update", tree.ObjectOf(
			optional("allow", tree.StringType, "The most that an apply may do to a running guest. `live`: only what needs no restart; every other change is refused at plan. `next_boot` (standard): the definition takes what the guest cannot, and `status.pending` lists it until somebody restarts the guest. `restart`: the guest is shut down in order and started again, if a change or something pending needs it; the plan says so. One that somebody paused is paused again."),
			optional("media", tree.StringType, "When a running guest gets another medium into a drive, its seed for example. `live` (standard): at once, without interruption. `next_boot`: it keeps the one that it has until its next start, and `status.pending` lists the new one; with `allow = \"restart\"` the apply restarts it in order. It is about another medium, as of a seed with `pool`; new content of the volume that is in the drive already is the volume's own change, and goes in at once. See the [guide on seeds](../guides/seeds.md)."),
			shutdown("How a restart (where `allow` is `restart`) and `running = false` stop the guest. A guest that somebody paused, or whose system sleeps, goes on for it; one that crashed hears nothing.", flag("force", "Stop the guest hard if it does not shut down in time. Unset, it is then left alone, and the apply fails.")),
			optional("drift", tree.StringType, "`revert` puts all drift of tier modification back. Unset, such drift is held until its digest is in `approve`."),
			optional("approve", tree.ListOf(tree.StringType), "Digests of held drift that may be put back; the warnings of a plan print them."),
		), "What an update may do."),
		optional("adopt", tree.BoolType, "Take over a domain that is marked as another owner's. See the provider's `owner`."),
		optional("protect", tree.BoolType, "Refuse to destroy or replace the domain. Unset, the provider's `protect` counts (standard: true)."),
		reported("change", kind.ChangeType(), "What the last plan that changed something does. Meaningful where the action is not a no-op."),
		reported("status", statusType(), "What the host says, as of the last refresh."),
	)
	return tree.ObjectOf(attrs...)
}

func statusType() *tree.Type {
	held := tree.ObjectOf(
		reported("path", tree.StringType, "The field."), reported("desired", tree.StringType, "What the configuration has."),
		reported("actual", tree.StringType, "What the host has."), reported("tier", tree.StringType, "modification, or locked: that cannot be approved."),
		reported("approve", tree.StringType, "The digest that approves exactly this drift, for `update.approve`; null for locked fields."),
	)
	return tree.ObjectOf(
		reported("state", tree.StringType, "settled; pending (the running guest differs from its definition: it waits for the next start); held (somebody changed the host, and it is left as it is); degraded (the definition is missing, or the guest crashed or was paused by libvirt itself: `power_reason` says why); failed (the first start failed)."),
		reported("settled", tree.BoolType, "Nothing waits, nothing is held and nothing is missing."),
		reported("power", tree.StringType, "libvirt's state of the guest: running, paused, pmsuspended (its system sleeps), shutdown (on its way down), crashed (kept for inspection), shutoff. All but the last count as running."),
		reported("power_reason", tree.StringType, "libvirt's reason for it, as `virsh domstate --reason` says it: booted, user, I/O error, panicked, destroyed, …; null if it gives none."),
		reported("generation", tree.NumberType, "Of the definition: how many changes the provider has made to it."),
		reported("observed_generation", tree.NumberType, "Of the running guest, null while it is off. The domain's metadata has both, so that a start by anybody shows."),
		reported("owner", tree.StringType, "Who manages the domain, by the mark in its metadata; null if there is none."),
		reported("persistent", tree.BoolType, "Whether there is a definition; false after an undefine of the running guest."),
		reported("started", tree.BoolType, "Whether the guest has ever run, as far as the provider knows."),
		reported("managed_save", tree.BoolType, "Whether a saved image would be resumed at the next start, with the definition of that time."),
		reported("spec_digest", tree.StringType, "Digest of the configuration of the last apply, without settings, secrets and the directories of seed images; null before the first."),
		reported("pending", tree.ListOf(tree.StringType), "Paths in which the running guest differs from its definition: it takes them at its next start."),
		reported("held", tree.ListOf(held), "What somebody changed on the host and the plan leaves as it is."),
		reported("foreign", tree.ListOf(tree.StringType), "Devices and settings that appeared since the last apply and that no configuration names. They are never removed."),
		reported("boot_problems", tree.ListOf(tree.StringType), "What would go wrong silently when the host boots or the guest starts: something it needs is gone, off, or not started by the host."),
		reported("last_steps", kind.StepsType(), "What the last apply did, step by step."),
	)
}

// devicesType adds wait_for_ip to the interfaces.
func devicesType(typ *tree.Type) *tree.Type {
	attrs := make([]*tree.Attribute, 0, len(typ.Attrs))
	for name, a := range typ.Attrs {
		if name == "interfaces" {
			nic := make([]*tree.Attribute, 0, len(a.Type.Elem.Attrs)+1)
			for _, sub := range a.Type.Elem.Attrs {
				nic = append(nic, sub)
			}
			nic = append(nic, waitType())
			copied := *a
			copied.Type = tree.ListOf(tree.ObjectOf(nic...))
			a = &copied
		}
		attrs = append(attrs, a)
	}
	return tree.ObjectOf(attrs...)
}

// within says whether a pattern is the prefix itself or lies below it.
func within(pattern, prefix string) bool {
	rest, ok := strings.CutPrefix(pattern, prefix)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
