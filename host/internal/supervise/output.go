package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxLog bounds each of the two files of a process's output, in bytes.
const maxLog = 1 << 20

// An output is where the process prints, and the shim about it.
type output struct {
	stdout, stderr *os.File
	read           *os.File // our end of the pipe; nil under a journal
	done           chan struct{}
}

// openOutput gives the process the shim's own output where that is the journal
// (systemd.exec(5), $JOURNAL_STREAM), else a pipe that is copied to its log.
func openOutput(dir string) (*output, error) {
	if os.Getenv("JOURNAL_STREAM") != "" || os.Getenv("INVOCATION_ID") != "" {
		return &output{stdout: os.Stdout, stderr: os.Stderr}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{stdout: w, stderr: w, read: r, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		log := &boundedLog{path: filepath.Join(dir, OutputFile), max: maxLog}
		defer log.close()
		_, _ = io.CopyBuffer(struct{ io.Writer }{log}, struct{ io.Reader }{r}, make([]byte, 64<<10))
	}()
	return o, nil
}

// say prints a line of the shim's own among those of the process.
func (o *output) say(format string, args ...any) {
	fmt.Fprintf(o.stderr, "mesh-host shim: "+format+"\n", args...)
}

// close waits until everything that was printed is in the log.
func (o *output) close() {
	if o.read == nil {
		return
	}
	_ = o.stdout.Close()
	// Its end comes with the end of the last process that could print; should
	// that be one that cannot be killed, it does not come.
	_ = o.read.SetReadDeadline(time.Now().Add(5 * time.Second))
	<-o.done
	_ = o.read.Close()
}

// A boundedLog keeps the last of what is written, in two files of at most max
// bytes: path, and path.1 with what came before.
type boundedLog struct {
	path string
	max  int64
	file *os.File
	size int64
}

// Write never fails: what cannot be kept (a full disk) is lost, so that the
// process that prints it goes on.
func (l *boundedLog) Write(p []byte) (int, error) {
	if l.file != nil && l.size+int64(len(p)) > l.max {
		l.close()
		_ = os.Rename(l.path, l.path+".1")
	}
	if l.file == nil && !l.open() {
		return len(p), nil
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		l.close()
	}
	return len(p), nil
}

func (l *boundedLog) open() bool {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return false
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return false
	}
	l.file, l.size = f, fi.Size()
	return true
}

func (l *boundedLog) close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
