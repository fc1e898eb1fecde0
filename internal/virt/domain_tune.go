package virt

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirt"
)

// Parameters are settings by the names that the domain's XML has for them. A
// call changes those that it is given. What a call returns has all that libvirt
// knows, and leaves out what the host's libvirt does not have.
type Parameters map[string]int64

// fields are the parameters of one call: name in the XML, field in the binding's
// struct.
type fields map[string]string

// pack fills the binding's struct, a pointer.
func (f fields) pack(p Parameters, into any) error {
	v := reflect.ValueOf(into).Elem()
	for _, name := range slices.Sorted(maps.Keys(p)) {
		field, known := f[name]
		if !known {
			return fmt.Errorf("no such parameter: %s", name)
		}
		switch value := v.FieldByName(field); value.Kind() {
		case reflect.Int, reflect.Int64:
			value.SetInt(p[name])
		case reflect.Bool:
			value.SetBool(p[name] != 0)
		default:
			if p[name] < 0 || value.OverflowUint(uint64(p[name])) {
				return fmt.Errorf("%s: %d is out of range", name, p[name])
			}
			value.SetUint(uint64(p[name]))
		}
		v.FieldByName(field + "Set").SetBool(true)
	}
	return nil
}

func (f fields) unpack(from any) Parameters {
	out := Parameters{}
	v := reflect.ValueOf(from).Elem()
	for name, field := range f {
		if !v.FieldByName(field + "Set").Bool() {
			continue
		}
		switch value := v.FieldByName(field); value.Kind() {
		case reflect.Int, reflect.Int64:
			out[name] = value.Int()
		case reflect.Bool:
			if out[name] = 0; value.Bool() {
				out[name] = 1
			}
		default:
			out[name] = int64(value.Uint())
		}
	}
	return out
}

// parameters reads those of one call.
func parameters[T any](ctx context.Context, d *Domain, op string, f fields, get func(*libvirt.Domain) (*T, error)) (out Parameters, err error) {
	err = d.call(ctx, op, false, func(dom *libvirt.Domain) error {
		p, err := get(dom)
		if err == nil {
			out = f.unpack(p)
		}
		return err
	})
	return out, err
}

// setParameters sets them.
func setParameters[T any](ctx context.Context, d *Domain, op string, f fields, p Parameters, set func(*libvirt.Domain, *T) error) error {
	return d.call(ctx, op, true, func(dom *libvirt.Domain) error {
		var into T
		if err := f.pack(p, &into); err != nil {
			return err
		}
		return set(dom, &into)
	})
}

var memoryFields = fields{
	"hard_limit": "HardLimit", "soft_limit": "SoftLimit", "swap_hard_limit": "SwapHardLimit", "min_guarantee": "MinGuarantee",
}

// NoLimit is what libvirt shows, and takes, for a limit of memory that is not
// set, in KiB.
const NoLimit = int64(libvirt.DOMAIN_MEMORY_PARAM_UNLIMITED)

// MemoryParameters returns the limits of memtune, in KiB.
func (d *Domain) MemoryParameters(ctx context.Context, side Affect) (Parameters, error) {
	return parameters(ctx, d, "read the memory limits of domain", memoryFields, func(dom *libvirt.Domain) (*libvirt.DomainMemoryParameters, error) {
		return dom.GetMemoryParameters(libvirt.DomainModificationImpact(side))
	})
}

// SetMemoryParameters sets limits of memtune: hard_limit, soft_limit,
// swap_hard_limit, in KiB. NoLimit takes one away, its element too. A hard limit
// above the swap limit is ErrInvalidArg, min_guarantee ErrArgumentUnsupported. A
// hard limit below what QEMU needs gets the guest killed.
func (d *Domain) SetMemoryParameters(ctx context.Context, p Parameters, side Affect) error {
	return setParameters(ctx, d, "set the memory limits of domain", memoryFields, p, func(dom *libvirt.Domain, p *libvirt.DomainMemoryParameters) error {
		return dom.SetMemoryParameters(p, libvirt.DomainModificationImpact(side))
	})
}

var schedulerFields = fields{
	"shares": "CpuShares", "period": "VcpuPeriod", "quota": "VcpuQuota",
	"global_period": "GlobalPeriod", "global_quota": "GlobalQuota",
	"emulator_period": "EmulatorPeriod", "emulator_quota": "EmulatorQuota",
	"iothread_period": "IothreadPeriod", "iothread_quota": "IothreadQuota",
}

// SchedulerParameters returns the shares, periods and quotas of cputune. Of a
// guest they are what the kernel has: 1024, 100000 and -1 where nothing is set;
// of a definition 0 then.
func (d *Domain) SchedulerParameters(ctx context.Context, side Affect) (Parameters, error) {
	return parameters(ctx, d, "read the CPU limits of domain", schedulerFields, func(dom *libvirt.Domain) (*libvirt.DomainSchedulerParameters, error) {
		return dom.GetSchedulerParametersFlags(libvirt.DomainModificationImpact(side))
	})
}

// SetSchedulerParameters sets shares (relative to other guests), and periods and
// quotas in microseconds: period and quota of each vCPU, and those with the
// prefix global_, emulator_ or iothread_. What is out of range is ErrInvalidArg;
// a definition takes any number of shares, though.
//
// A quota of 0 takes its element out of a definition, and does nothing to a
// guest, without an error. A guest loses its quota with -1, which its XML then
// shows. Where control groups are those of the first version, the kernel refuses
// (ErrSystem) a guest less than one of its parts has, so the order matters:
// global_ first up, last down.
func (d *Domain) SetSchedulerParameters(ctx context.Context, p Parameters, side Affect) error {
	return setParameters(ctx, d, "set the CPU limits of domain", schedulerFields, p, func(dom *libvirt.Domain, p *libvirt.DomainSchedulerParameters) error {
		return dom.SetSchedulerParametersFlags(p, libvirt.DomainModificationImpact(side))
	})
}

var perfFields = fields{
	"cmt": "Cmt", "mbmt": "Mbmt", "mbml": "Mbml", "cache_misses": "CacheMisses", "cache_references": "CacheReferences",
	"instructions": "Instructions", "cpu_cycles": "CpuCycles", "branch_instructions": "BranchInstructions", "branch_misses": "BranchMisses",
	"bus_cycles": "BusCycles", "stalled_cycles_frontend": "StalledCyclesFrontend", "stalled_cycles_backend": "StalledCyclesBackend",
	"ref_cpu_cycles": "RefCpuCycles", "cpu_clock": "CpuClock", "task_clock": "TaskClock", "page_faults": "PageFaults",
	"context_switches": "ContextSwitches", "cpu_migrations": "CpuMigrations", "page_faults_min": "PageFaultsMin",
	"page_faults_maj": "PageFaultsMaj", "alignment_faults": "AlignmentFaults", "emulation_faults": "EmulationFaults",
}

// PerfEvents returns which events of the guest are counted: 1 or 0.
func (d *Domain) PerfEvents(ctx context.Context, side Affect) (Parameters, error) {
	return parameters(ctx, d, "read the perf events of domain", perfFields, func(dom *libvirt.Domain) (*libvirt.DomainPerfEvents, error) {
		return dom.GetPerfEvents(libvirt.DomainModificationImpact(side))
	})
}

// SetPerfEvents switches the counting of events on (1) or off (0), which the XML
// goes on to show. One that the host's processor lacks is ErrArgumentUnsupported
// live, and taken into a definition.
func (d *Domain) SetPerfEvents(ctx context.Context, p Parameters, side Affect) error {
	return setParameters(ctx, d, "set the perf events of domain", perfFields, p, func(dom *libvirt.Domain, p *libvirt.DomainPerfEvents) error {
		return dom.SetPerfEvents(p, libvirt.DomainModificationImpact(side))
	})
}
