package storage

import (
	"fmt"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/kind"
	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// What a volume is made from: content that is uploaded, or another volume of the
// host that is copied there. It acts once. on_change says what becomes of a volume
// whose configuration names another origin later.
const (
	onChange        = "create.on_change"
	keepOnChange    = "keep"
	replaceOnChange = "replace"
)

// createType is the schema of `create`.
func createType() *tree.Attribute {
	return optional("create", tree.ObjectOf(
		optional("content", tree.ObjectOf(
			&tree.Attribute{Name: "url", Type: tree.StringType, Required: true, Description: "`https://…`, `http://…`, `file:///…` or a path on the machine that runs the plan."},
			optional("checksum", tree.StringType, "`sha256:` and 64 hexadecimal digits. Content of another checksum leaves no volume behind. Without it, a server that announces less than the image has is believed."),
		), "What the volume is filled with. Its size, and for qcow2 its virtual size, is the least capacity."),
		optional("clone", tree.ObjectOf(
			optional("pool", tree.StringType, "Name of the pool that has the volume `volume`."),
			optional("volume", tree.StringType, "Name of the volume that is copied."),
			optional("path", tree.StringType, "Path or key of the volume that is copied, instead of `pool` and `volume`. It has to be in a started pool."),
		), "A volume of the same host that the host itself copies. The copy is whole, also if that one lies over a backing file; its size is the least capacity, its format the one of the copy unless `target.format.type` says otherwise. "+
			"A volume that a running guest writes to is refused: the copy would be torn."),
		optional("on_change", tree.StringType, "What becomes of the volume when the configuration names another content or another volume to clone: `keep` (standard) keeps it as it is, with a warning in each plan; `replace` asks for a new volume in its place, **with the loss of what it holds**, which `protect` refuses. "+
			"The same checksum at another URL is the same content. A seed is exchanged in place in either case."),
	), "What the volume is made from. It acts once: an existing volume keeps its content, whatever is written here. "+
		"The one exception is what a `libvirt_cloudinit_disk`, `libvirt_ignition` or `libvirt_combustion` wrote (or another path that ends in `-sha256-DIGEST.iso`): its digest is compared with what the volume really holds, "+
		"wherever the file lies. Other content is put into the volume that is there: out of the drives of the guests that run with it, written, read back, and in again.")
}

// sameOrigin says whether two values of `create` make the same volume.
func sameOrigin(a, b tree.Value) bool {
	x, y := a.Attr("content"), b.Attr("content")
	if !tree.Equal(a.Attr("clone"), b.Attr("clone")) {
		return false
	}
	return x.IsNull() && y.IsNull() || sameContent(x, y)
}

// sameContent compares by checksum where both have one, as an image has many
// mirrors and a URL many images.
func sameContent(a, b tree.Value) bool {
	x, y := a.Attr("checksum"), b.Attr("checksum")
	if x.IsKnown() && y.IsKnown() {
		return strings.EqualFold(x.Str(), y.Str())
	}
	from, to := a.Attr("url"), b.Attr("url")
	return from.IsKnown() && tree.Equal(from, to) || sameSeed(from.Str(), to.Str())
}

// remakesVolume says that another origin asks for another volume.
func remakesVolume(pattern string, desired tree.Value) bool {
	return pattern == "create" && desired.Attr("on_change").Str() == replaceOnChange
}

// decidesVolume is where create says so.
func decidesVolume(pattern string) tree.Path {
	if pattern == "create" {
		return tree.ParsePath("on_change")
	}
	return nil
}

// validateOrigin checks what a volume is made from, as far as that can be known
// without the host.
func validateOrigin(config tree.Value, problem func(at, summary, detail string)) {
	create := config.Attr("create")
	content, clone := create.Attr("content"), create.Attr("clone")
	if v := create.Attr("on_change"); v.IsKnown() && v.Str() != keepOnChange && v.Str() != replaceOnChange {
		problem(onChange, "Unknown value", fmt.Sprintf("%s is %q; it takes %q or %q.", onChange, v.Str(), keepOnChange, replaceOnChange))
	}
	if clone.IsKnown() {
		validateClone(config, clone, problem)
	}
	if !content.IsKnown() {
		return
	}
	if sum := content.Attr("checksum"); sum.IsKnown() && !isChecksum(sum.Str()) {
		problem("create.content.checksum", "Not a checksum", fmt.Sprintf("create.content.checksum is %q; it takes sha256: and 64 hexadecimal digits, as sha256sum prints them.", sum.Str()))
	}
	if url := content.Attr("url"); url.IsKnown() {
		if err := checkURL(url.Str()); err != nil {
			problem("create.content.url", "Cannot read content from there", err.Error()+".")
		}
	}
	if config.Attr("backing_store").IsKnown() {
		problem("backing_store", "A volume with content and a backing store", "What create.content holds would not lie over backing_store: it is uploaded as it is. Leave one of the two out.")
	}
	if config.At("target.encryption").IsKnown() {
		problem("target.encryption", "Content for an encrypted volume", "The upload of create.content would overwrite the header with the keys. Make the volume without content, and fill it from a guest that has it; or leave target.encryption out and upload an image that is encrypted already.")
	}
	if clone.IsKnown() {
		problem("create.clone", "A volume with content that is a clone as well", "create has both content and clone. Leave one of the two out.")
	}
}

func validateClone(config, clone tree.Value, problem func(at, summary, detail string)) {
	pool, volume, path := clone.Attr("pool"), clone.Attr("volume"), clone.Attr("path")
	named := !pool.IsNull() || !volume.IsNull()
	switch {
	case named && !path.IsNull(), !named && path.IsNull(), named && (pool.IsNull() || volume.IsNull()):
		problem("create.clone", "Which volume is to be copied?", "create.clone takes either path, or pool and volume both.")
	case pool.IsKnown() && volume.IsKnown() && tree.Equal(pool, config.Attr("pool")) && tree.Equal(volume, config.Attr("name")):
		problem("create.clone", "A volume cannot be a copy of itself", "create.clone names the volume that is to be made. Name another one; or import this one, if it is there already.")
	}
	if config.Attr("backing_store").IsKnown() {
		problem("backing_store", "A clone with a backing store", "The host makes a whole copy of create.clone, which lies over nothing. Leave backing_store out; or leave create.clone out, and lay the new volume over that one.")
	}
}

// refuseOrigin is the refusal of a volume that cannot be copied.
func (m *making) refuseOrigin(at, summary, detail string) error {
	return kind.Refuse(kind.Problem{Path: tree.ParsePath(at), Summary: summary, Detail: detail + " No volume was made."})
}
