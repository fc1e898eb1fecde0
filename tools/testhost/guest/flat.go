package guest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// A flat kernel is a bzImage that has nothing to unpack: Debian's real-mode
// code, then memory as the kernel wants it, from flatBase on, which the loader
// copies to flatBase. The first pages hold what the decompressor would have
// done in the end: switch to 64 bits with all of the first 4 GiB mapped to
// itself, and jump to the kernel (Documentation/arch/x86/boot.rst).
//
// Emulated, decompression takes longer than all the rest of the kernel's boot.
// QEMU could start the ELF kernel by itself (PVH), but then it puts the initrd
// over the ACPI tables of a machine with many devices, and the guest finds none.
const (
	flatBase  = 0x100000 // where a bzImage is loaded
	flatGDT   = flatBase + 0x1000
	flatPML4  = flatBase + 0x2000
	flatPDPT  = flatBase + 0x3000
	flatPD    = flatBase + 0x4000 // four pages, of 1 GiB each
	flatFirst = flatBase + 0x8000 // the first byte that a kernel may use
)

// flat32 is entered by the real-mode code: 32 bits, flat segments, ESI points
// to the boot parameters.
var flat32 = []byte{
	0xfa,                         // cli
	0xb8, 0x00, 0x10, 0x10, 0x00, // mov eax, flatGDT
	0x0f, 0x01, 0x10, // lgdt [eax]
	0x0f, 0x20, 0xe0, // mov eax, cr4
	0x83, 0xc8, 0x20, // or eax, PAE
	0x0f, 0x22, 0xe0, // mov cr4, eax
	0xb8, 0x00, 0x20, 0x10, 0x00, // mov eax, flatPML4
	0x0f, 0x22, 0xd8, // mov cr3, eax
	0xb9, 0x80, 0x00, 0x00, 0xc0, // mov ecx, EFER
	0x0f, 0x32, // rdmsr
	0x0d, 0x00, 0x01, 0x00, 0x00, // or eax, LME
	0x0f, 0x30, // wrmsr
	0x0f, 0x20, 0xc0, // mov eax, cr0
	0x0d, 0x01, 0x00, 0x00, 0x80, // or eax, PG|PE
	0x0f, 0x22, 0xc0, // mov cr0, eax
	0xea, 0x00, 0x01, 0x10, 0x00, 0x10, 0x00, // jmp 0x10:flatBase+0x100
}

// flat64 follows at flatBase+0x100; the kernel's entry is appended to it.
var flat64 = []byte{
	0xb8, 0x18, 0x00, 0x00, 0x00, // mov eax, 0x18
	0x8e, 0xd8, 0x8e, 0xc0, 0x8e, 0xd0, 0x8e, 0xe0, 0x8e, 0xe8, // mov ds, es, ss, fs, gs, eax
	0x89, 0xf6, // mov esi, esi: clears the upper half
}

// gdt has the two segments that the boot protocol asks for, at 0x10 and 0x18.
var gdt = []uint64{0, 0, 0x00af9a000000ffff, 0x00cf92000000ffff}

// flatKernel makes a flat kernel of a bzImage and the ELF kernel out of it.
func flatKernel(bz, vmlinux []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(vmlinux))
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("not an x86-64 kernel")
	}
	memory, end, err := memoryImage(f)
	if err != nil {
		return nil, err
	}
	if f.Entry < flatFirst || f.Entry >= end {
		return nil, fmt.Errorf("the kernel's entry %#x lies outside its memory", f.Entry)
	}
	le := binary.LittleEndian
	copy(memory, flat32)
	code := append(bytes.Clone(flat64), 0xb8) // mov eax, entry
	code = le.AppendUint32(code, uint32(f.Entry))
	copy(memory[0x100:], append(code, 0xff, 0xe0)) // jmp rax
	table := memory[flatGDT-flatBase:]
	le.PutUint16(table, uint16(8*len(gdt)-1))
	le.PutUint32(table[2:], flatGDT+8)
	for i, d := range gdt {
		le.PutUint64(table[8+8*i:], d)
	}
	const table0 = 0x3 // present, writable
	le.PutUint64(memory[flatPML4-flatBase:], flatPDPT|table0)
	for gib := range 4 {
		le.PutUint64(memory[flatPDPT-flatBase+8*gib:], uint64(flatPD+0x1000*gib)|table0)
	}
	for i := range 4 * 512 {
		le.PutUint64(memory[flatPD-flatBase+8*i:], uint64(i)<<21|table0|0x80) // pages of 2 MiB
	}
	memory = bytes.TrimRight(memory, "\x00") // the loader's memory is zero, or the kernel clears it
	memory = append(memory, make([]byte, -len(memory)&15)...)

	setup := (int(bz[0x1f1]) + 1) * 512
	out := append(bytes.Clone(bz[:setup]), memory...)
	le.PutUint32(out[0x1f4:], uint32(len(memory)/16)) // syssize
	le.PutUint32(out[0x214:], flatBase)               // code32_start
	out[0x234] = 0                                    // relocatable_kernel
	le.PutUint16(out[0x236:], 0)                      // xloadflags: no 64-bit, no EFI entry
	le.PutUint64(out[0x258:], flatBase)               // pref_address
	le.PutUint32(out[0x260:], uint32(end-flatBase))   // init_size
	return out, nil
}

// memoryImage lays the kernel's segments out from flatBase on, and returns
// where the memory that the kernel needs ends.
func memoryImage(f *elf.File) (memory []byte, end uint64, err error) {
	const limit = 1 << 30 // far more than a kernel has
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			end = max(end, p.Paddr+p.Memsz)
		}
	}
	if end <= flatFirst || end > limit {
		return nil, 0, fmt.Errorf("the kernel's memory ends at %#x", end)
	}
	memory = make([]byte, end-flatBase)
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Paddr < flatFirst || p.Filesz > p.Memsz {
			return nil, 0, fmt.Errorf("a segment of %d bytes at %#x does not fit", p.Filesz, p.Paddr)
		}
		at := p.Paddr - flatBase
		if _, err := p.ReadAt(memory[at:at+p.Filesz], 0); err != nil {
			return nil, 0, err
		}
	}
	return memory, end, nil
}
