//go:build !amd64

package profile

// cpuSays is for processors that do not tell.
func cpuSays() (virtual bool, signature string) { return false, "" }
