package cli

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// LoudnessFlags adds the flags by which every program is told how to speak: in
// JSON, of nothing but data and faults, or of all that it does.
func LoudnessFlags(root *cobra.Command, json, quiet, verbose *bool) {
	f := root.PersistentFlags()
	f.BoolVar(json, "json", false, "print data, faults and progress as JSON")
	f.BoolVar(quiet, "quiet", false, "print nothing but data and faults")
	f.BoolVar(verbose, "verbose", false, "print what is being done")
}

// Log is where a command says what it does: nowhere, since it prints the
// outcome, unless it is verbose.
func Log(w io.Writer, verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
