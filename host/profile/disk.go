package profile

import (
	"errors"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxDisks bounds what is told and maxDiskNames what is looked at: a machine
// can have thousands of loop devices.
const (
	maxDisks     = 256
	maxDiskNames = 1 << 16
)

// parts are what a flash chip has beside its memory.
var parts = regexp.MustCompile(`^mmcblk[0-9]+(boot|rpmb|gp)`)

// disks are those behind which there is a device, sorted by name: loop, ram,
// zram, device mapper and RAID ones are made of something else and have none.
// Left out too are drives whose medium is none or comes and goes (optical,
// floppy, an empty card reader), and the hidden paths of NVMe.
func (s source) disks() ([]Disk, error) {
	dir, err := openDir(s.kernel.Path("/sys/block"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxDiskNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	var out []Disk
	for _, name := range names {
		at := "/sys/block/" + name + "/"
		if strings.HasPrefix(name, "sr") || strings.HasPrefix(name, "fd") || parts.MatchString(name) ||
			!exists(s.kernel, at+"device") || s.attribute(at+"hidden") == "1" || clean(name) != name {
			continue
		}
		// In sectors of 512 bytes, whatever the disk's are.
		sectors, err := strconv.ParseInt(s.attribute(at+"size"), 10, 64)
		if err != nil || sectors <= 0 || sectors > 1<<53 {
			continue
		}
		out = append(out, Disk{
			Name: name, Bytes: sectors << 9,
			Rotational: s.attribute(at+"queue/rotational") == "1", Removable: s.attribute(at+"removable") == "1",
		})
		if len(out) == maxDisks {
			break
		}
	}
	return out, nil
}
