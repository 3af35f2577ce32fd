// Package metrics is figures in the text format of Prometheus, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
// It promises a text that every reader of the format takes: one HELP and one TYPE
// line a family, before its samples; names as they were given; label values escaped,
// whatever they hold. It does not promise that names follow a convention, nor does it
// keep anything: whoever is asked makes the families of what he knows, and they are
// gone when they are written. Nothing of it is on a disk.
package metrics

import (
	"bytes"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ContentType is that of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// A Kind is a type of the format.
type Kind string

// The kinds. A summary here has a sum and a count, and no quantiles.
const (
	Counter Kind = "counter"
	Gauge   Kind = "gauge"
	Summary Kind = "summary"
)

// A Family is the samples of one name.
type Family struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"type"`
	Help    string   `json:"help"`
	Samples []Sample `json:"samples"`
}

// A Sample is one figure.
type Sample struct {
	// Suffix goes to the family's name: "_sum" and "_count" of a summary.
	Suffix string            `json:"suffix,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Value  float64           `json:"value"`
}

// A Set is families in the order in which they were begun.
type Set struct{ Families []Family }

// Begin begins a family; samples are added to the one that was begun last.
func (s *Set) Begin(kind Kind, name, help string) {
	s.Families = append(s.Families, Family{Name: name, Kind: kind, Help: help, Samples: []Sample{}})
}

// Add adds a sample, with labels as NAME, VALUE, NAME, VALUE.
func (s *Set) Add(value float64, labels ...string) {
	sample := Sample{Value: value}
	for i := 0; i+1 < len(labels); i += 2 {
		if sample.Labels == nil {
			sample.Labels = map[string]string{}
		}
		sample.Labels[labels[i]] = labels[i+1]
	}
	s.put(sample)
}

// Sum adds the samples of a summary.
func (s *Set) Sum(sum float64, count uint64) {
	s.put(Sample{Suffix: "_sum", Value: sum})
	s.put(Sample{Suffix: "_count", Value: float64(count)})
}

func (s *Set) put(sample Sample) {
	f := &s.Families[len(s.Families)-1]
	f.Samples = append(f.Samples, sample)
}

// One begins a family of one sample without a label.
func (s *Set) One(kind Kind, name, help string, value float64) {
	s.Begin(kind, name, help)
	s.Add(value)
}

// At begins a gauge of one moment, in seconds since 1970; none for the zero time.
func (s *Set) At(name, help string, at time.Time) {
	if !at.IsZero() {
		s.One(Gauge, name, help, Seconds(at))
	}
}

// Seconds is a moment in seconds since 1970.
func Seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }

// Truth is 1 or 0.
func Truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Write writes the families. One without a sample is left out.
func Write(w io.Writer, families []Family) error {
	var b bytes.Buffer
	for _, f := range families {
		if len(f.Samples) == 0 {
			continue
		}
		b.WriteString("# HELP " + f.Name + " " + escape(f.Help, false) + "\n# TYPE " + f.Name + " " + string(f.Kind) + "\n")
		for _, s := range f.Samples {
			b.WriteString(f.Name + s.Suffix)
			for i, name := range slices.Sorted(maps.Keys(s.Labels)) {
				b.WriteString([]string{"{", ","}[min(i, 1)] + name + `="` + escape(s.Labels[name], true) + `"`)
			}
			if len(s.Labels) > 0 {
				b.WriteByte('}')
			}
			b.WriteString(" " + number(s.Value) + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// escape writes what a value may not hold as it is; of a text that is no UTF-8 the
// format has no form.
func escape(text string, quoted bool) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), `\`, `\\`)
	text = strings.ReplaceAll(text, "\n", `\n`)
	if quoted {
		text = strings.ReplaceAll(text, `"`, `\"`)
	}
	return text
}

// number writes a moment so that a person can read it, and not with an exponent.
func number(v float64) string {
	if math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
