package cli

import (
	"errors"
	"syscall"
)

// remedyOfSystem is what to do about a fault of the system that nobody on its way
// knew more of.
func remedyOfSystem(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room and run it again"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: mount it writable, or use another directory"
	}
	return ""
}
