package pack

import "runtime/debug"

const compressor = "github.com/klauspost/compress"

// Compressor says which compressor this program packs with: another version may
// give other bytes.
func Compressor() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == compressor {
				return m.Path + " " + m.Version
			}
		}
	}
	return compressor
}
