package profile

import "encoding/binary"

// cpuid is the instruction: what leaf says.
func cpuid(leaf uint32) (eax, ebx, ecx, edx uint32)

// cpuSays asks the processor whether it is virtual, and whose. A bit that
// hardware never sets says so, and the leaf 0x40000000 then has the
// hypervisor's signature (lwn.net/Articles/301888). /proc/cpuinfo shows the bit
// and not the signature.
func cpuSays() (virtual bool, signature string) {
	if _, _, ecx, _ := cpuid(1); ecx&(1<<31) == 0 {
		return false, ""
	}
	_, b, c, d := cpuid(0x40000000)
	var out []byte
	for _, r := range []uint32{b, c, d} {
		out = binary.LittleEndian.AppendUint32(out, r)
	}
	return true, string(out)
}
