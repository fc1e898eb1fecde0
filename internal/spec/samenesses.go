package spec

import (
	"fmt"
	"math/big"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/driftsafe/terraform-provider-libvirt/internal/tree"
)

// The tables of semantic equality. A suffix is the end of a pattern, whole names
// from a dot on. What a reason calls measured was seen with libvirt 9.0: it was
// defined in one way and came back in the other.

// A spelling is a field that libvirt writes in its own way. canon gives texts of
// one meaning one form; "" is what libvirt chooses again each time.
type spelling struct {
	suffix string
	canon  func(string) string
	reason string
}

var spellings = []spelling{
	{"mac.address", canonMAC, "measured: lower case, two digits a part"},
	{"hosts[].mac", canonMAC, "dnsmasq compares them so"},
	{"uuid", canonUUID, "measured: lower case, with hyphens"},
	{"gen_id", canonUUID, "measured: lower case"},
	{"interface_id", canonUUID, "measured: lower case"},
	{"instance_id", canonUUID, "a UUID like interface_id"},
	{"permissions.mode", canonOctal, "measured: four digits"},
	{"fmode", canonOctal, "measured: four digits"},
	{"dmode", canonOctal, "measured: four digits"},
	{"target.path", canonPath, "measured: pools without double and trailing slashes"},
	{"source.dir.path", canonPath, "measured: pools without double and trailing slashes"},
	{"backing_store.path", canonPath, "one file, spelt twice"},
	{"source.file.file", canonPath, "one file, spelt twice"},
	{"address.pci.multi_function", strings.ToLower, "on and off"},
	{"vendor.id", canonHex, "measured: hexadecimal, four digits"},
	{"product.id", canonHex, "measured: hexadecimal, four digits"},

	{"vcpu_cpuset", canonSet, "measured: ranges in order, nothing excluded"},
	{"cpu_set", canonSet, "measured: ranges in order, nothing excluded"},
	{"vcpus", canonSet, "measured: ranges in order, nothing excluded"},
	{"io_threads", canonSet, "a set like vcpus"},
	{"cell[].cpus", canonSet, "measured: ranges in order"},
	{"nodeset", canonSet, "measured: ranges in order"},
	{"node_mask", canonSet, "a set like nodeset"},

	{"ips[].address", canonIP, "measured: IPv6 in its shortest form, lower case"},
	{"hosts[].ip", canonIP, "measured: IPv6 in its shortest form, lower case"},
	{"dns.host[].ip", canonIP, "measured: IPv6 in its shortest form, lower case"},
	{"forwarders[].addr", canonIP, "measured: IPv6 in its shortest form, lower case"},
	{"routes[].address", canonIP, "measured: IPv6 in its shortest form, lower case"},
	{"routes[].gateway", canonIP, "measured: IPv6 in its shortest form, lower case"},
	{"ranges[].start", canonIP, "an address like that of its network"},
	{"ranges[].end", canonIP, "an address like that of its network"},
	{"addresses[].start", canonIP, "an address like that of its network"},
	{"addresses[].end", canonIP, "an address like that of its network"},
	{"ip[].address", canonIP, "an address like that of a network"},
	{"route[].address", canonIP, "an address like that of a network"},
	{"route[].gateway", canonIP, "an address like that of a network"},

	{"interfaces[].target.dev", chosen(`^(vnet|macvtap|macvlan)\d+$`), "measured: libvirt names such a device anew at each start, and drops the name"},
	{"pty.path", chosen(`^/dev/pts/\d+$`), "measured: the kernel numbers terminals anew, and libvirt drops it"},
	{"tty", chosen(`^/dev/pts/\d+$`), "measured: the kernel numbers terminals anew, and libvirt drops it"},
	{"channels[].source.unix.path", chosen(`^(/var/lib|/run|/var/run)/libvirt/qemu/(channel|run/channel)/`), "measured: libvirt makes the path of the domain's name and number, and drops it"},
}

// A standard is a value that means the same as none: libvirt leaves it out, or
// says it though nobody did.
type standard struct {
	suffix string
	value  tree.Value
	reason string
}

// unlimited is what a cgroup says of a quota that nobody has set.
const unlimited = 17592186044415

var standards = func() []standard {
	text := tree.StringValue
	rows := []standard{
		{"interfaces[].link.state", text("up"), "a link is up unless it is said to be down"},
		{"interfaces[].managed", tree.BoolValue(false), "measured: left out"},
		{"forward.managed", tree.BoolValue(false), "measured: left out"},
		{"ips[].family", text("ipv4"), "ipv4 is what libvirt assumes, and leaves out"},
		{"routes[].family", text("ipv4"), "ipv4 is what libvirt assumes, and leaves out"},
		{"lease.unit", text("minutes"), "measured: said though nobody did"},
		{"domain.register", text("no"), "measured: left out"},
		{"ipv6", text("no"), "measured: left out"},
		{"port_groups[].default", text("no"), "measured: left out"},
		{"driver.cache", text("default"), "measured: left out"},
		{"target.tray", text("closed"), "measured: left out"},
		{"hosts[].transport", text("tcp"), "measured: left out"},
		{"protocol.type", text("raw"), "measured: left out of devices that are no network connection, said of the others"},
		{"spice.default_mode", text("any"), "measured: left out"},
		{"driver.vga_conf", text("io"), "measured: left out"},
		{"numa_tune.memory.placement", text("static"), "measured: left out beside a node set"},
		{"caches[].policy", text("none"), "measured: left out"},
		{"mem_balloon.stats.period", tree.IntValue(0), "measured: left out"},
		{"rate.period", tree.IntValue(0), "measured: left out"},
		{"frames.max", tree.IntValue(0), "measured: left out"},
		{"permissions.owner", text("-1"), "measured: left out"},
		{"permissions.group", text("-1"), "measured: left out"},
		{"source.host[].port", text("0"), "measured: left out of pools"},
	}
	for _, port := range []string{"vnc.port", "vnc.web_socket", "spice.port", "spice.tls_port", "rdp.port"} {
		rows = append(rows, standard{port, tree.IntValue(-1), "measured: libvirt chooses a port at each start, and says -1 or nothing"})
	}
	for _, quota := range []string{"quota", "global_quota", "emulator_quota", "io_thread_quota"} {
		rows = append(rows,
			standard{"cpu_tune." + quota, tree.IntValue(-1), "no limit"},
			standard{"cpu_tune." + quota, tree.IntValue(unlimited), "measured: what a cgroup of version 2 says of a quota that nobody set"})
	}
	for _, period := range []string{"period", "global_period", "emulator_period", "io_thread_period"} {
		rows = append(rows, standard{"cpu_tune." + period, tree.IntValue(100000), "measured: what the kernel has where nobody set one"})
	}
	return rows
}()

// A pair is a field in which two texts may mean the same, though neither is the
// other in another spelling.
type pair struct {
	suffix string
	equal  func(a, b string) bool
	reason string
}

var pairs = []pair{
	{"os.type_machine", equalMachine, "an alias stands for the version that it was defined with"},
	{"metadata.xml", equalFragments, "white space between elements means nothing"},
	{"controllers[].model", either("auto"), "measured: libvirt writes the model that it chose"},
}

// either says that a word stands for whatever libvirt chose.
func either(word string) func(a, b string) bool {
	return func(a, b string) bool { return a == word && b != "" || b == word && a != "" }
}

// chosen drops the names that libvirt or the kernel gives at each start.
func chosen(pattern string) func(string) string {
	re := regexp.MustCompile(pattern)
	return func(s string) string {
		if re.MatchString(s) {
			return ""
		}
		return s
	}
}

func canonMAC(s string) string {
	parts := strings.Split(s, ":")
	if len(parts) != 6 {
		return strings.ToLower(s)
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 16, 8)
		if err != nil {
			return strings.ToLower(s)
		}
		parts[i] = fmt.Sprintf("%02x", n)
	}
	return strings.Join(parts, ":")
}

func canonUUID(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "")) }

func canonOctal(s string) string {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		return s
	}
	return fmt.Sprintf("%04o", n)
}

func canonHex(s string) string {
	n, err := strconv.ParseUint(strings.ToLower(s), 0, 32)
	if err != nil {
		return s
	}
	return fmt.Sprintf("0x%04x", n)
}

// canonPath takes double and trailing slashes away. What lies behind ".." is
// another place where a link leads elsewhere.
func canonPath(s string) string {
	if s == "" || slices.Contains(strings.Split(s, "/"), "..") {
		return s
	}
	return path.Clean(s)
}

func canonIP(s string) string {
	ip, err := netip.ParseAddr(s)
	if err != nil {
		return s
	}
	return ip.String()
}

// mostInSet bounds the numbers of a set that is brought into form; libvirt knows
// no CPU beyond that.
const mostInSet = 1 << 14

// Set reads a set of numbers, as in "1-4,^2,7": from left to right numbers and
// ranges are added, and single ones taken out. The numbers are in ascending
// order. It is false for what is none.
func Set(s string) (numbers []uint, ok bool) {
	in := map[uint]bool{}
	for _, part := range strings.Split(strings.ReplaceAll(s, " ", ""), ",") {
		number, out := strings.CutPrefix(part, "^")
		first, last, ranged := strings.Cut(number, "-")
		if !ranged {
			last = first
		}
		from, errFrom := strconv.ParseUint(first, 10, 32)
		to, errTo := strconv.ParseUint(last, 10, 32)
		if errFrom != nil || errTo != nil || to < from || to >= mostInSet || out && ranged {
			return nil, false
		}
		for i := from; i <= to; i++ {
			in[uint(i)] = !out
		}
	}
	for i := range uint(mostInSet) {
		if in[i] {
			numbers = append(numbers, i)
		}
	}
	return numbers, true
}

// canonSet brings a set of numbers into form, as in "1,3-4,7".
func canonSet(s string) string {
	numbers, ok := Set(s)
	if !ok {
		return s
	}
	var parts []string
	for i := 0; i < len(numbers); i++ {
		first, last := numbers[i], numbers[i]
		for i+1 < len(numbers) && numbers[i+1] == last+1 {
			i++
			last = numbers[i]
		}
		if first == last {
			parts = append(parts, fmt.Sprint(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(parts, ",")
}

// roundsTo says whether one amount in bytes becomes the other when libvirt
// writes it in KiB: rounded up. 1 GB is 976562.5 KiB and comes back as 976563.
// Below a megabyte nothing is rounded in earnest.
func roundsTo(amount, rounded tree.Value) bool {
	a, okA := amount.Uint()
	b, okB := rounded.Uint()
	if !okA {
		whole, accuracy := amount.Num().Uint64() // a fraction of a byte is rounded too
		a, okA = whole, accuracy == big.Below
	}
	return okA && okB && a >= 1<<20 && b%1024 == 0 && a < b && b-a < 1024
}

// machineAliases are QEMU's names for "the newest version of a machine type".
// q35 and pc are different machines and never equal.
var machineAliases = map[string]*regexp.Regexp{
	"q35":             regexp.MustCompile(`^pc-q35-`),
	"pc":              regexp.MustCompile(`^pc-i440fx-`),
	"virt":            regexp.MustCompile(`^virt-`),
	"pseries":         regexp.MustCompile(`^pseries-`),
	"s390-ccw-virtio": regexp.MustCompile(`^s390-ccw-virtio-`),
	"s390-ccw":        regexp.MustCompile(`^s390-ccw-virtio-`),
}

func equalMachine(a, b string) bool {
	return machineAliases[a] != nil && machineAliases[a].MatchString(b) ||
		machineAliases[b] != nil && machineAliases[b].MatchString(a)
}

// equalFragments compares lists of XML elements without a root.
func equalFragments(a, b string) bool {
	x, errX := parse("<metadata>" + a + "</metadata>")
	y, errY := parse("<metadata>" + b + "</metadata>")
	return errX == nil && errY == nil && same(x.Root(), y.Root())
}

// SameXML says whether two elements have the same content: attributes in any
// order, text without the space around it. What cannot be parsed is equal to
// nothing.
func SameXML(a, b string) bool {
	x, errX := parse(a)
	y, errY := parse(b)
	return errX == nil && errY == nil && same(x.Root(), y.Root())
}
