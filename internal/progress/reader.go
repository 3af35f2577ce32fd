package progress

import "io"

// Reader is in, and says At for each read from it: total bytes of title, or an
// unknown number for 0.
func (r *Reporter) Reader(in io.Reader, title string, total int64) io.Reader {
	if r == nil {
		return in
	}
	return &reader{r: r, in: in, at: At{Title: title, Total: total}}
}

type reader struct {
	r  *Reporter
	in io.Reader
	at At
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.at.Done += int64(n)
	r.r.At(r.at)
	return n, err
}
