package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/internal/cli"
	"github.com/nox-mesh/nox-mesh/internal/fault"
	"github.com/nox-mesh/nox-mesh/release/internal/pack"
)

func (p *program) packCommand() *cobra.Command {
	var r pack.Release
	var out string
	var collect bool
	c := &cobra.Command{
		Use:   "pack PROGRAM…",
		Short: "Make a release of programs that are compiled already",
		Long: "Make a release of mesh-host and mesh-controller, compiled for one architecture or\n" +
			"more. Each program says itself what it is: one that says another version, or was\n" +
			"compiled with other flags than .goreleaser.yaml has, is refused. \"build\" does the\n" +
			"same with programs it compiles.\n\n" +
			"With --collect one program at a time is handed over, several at once if need be:\n" +
			"the call that completes the set that .goreleaser.yaml names makes the release.",
		Example: "  mesh-release pack --version 1.0.0 --keys keys --out dist bin/mesh-host bin/mesh-controller\n" +
			"  mesh-release pack --collect --version 1.0.0 --keys keys --out dist/release bin/mesh-host",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if collect && len(args) != 1 {
				return fault.Usagef("cannot collect %d programs at once: give one", len(args))
			}
			if err := p.begin(c.Context(), &r, out); err != nil {
				return err
			}
			if collect {
				return p.collect(c.Context(), r, args[0], out)
			}
			for _, file := range args {
				program, err := pack.ReadProgram(file)
				if err != nil {
					return err
				}
				r.Programs = append(r.Programs, program)
			}
			show := p.progress()
			show.Step("packing release " + r.Version)
			m, err := r.Write(c.Context(), out)
			show.Close()
			if err != nil {
				return err
			}
			return p.printRelease(m, out)
		},
	}
	c.Flags().BoolVar(&collect, "collect", false, "keep the program until the set is complete, then make the release")
	p.releasing(c, &r, &out)
	return c
}

func (p *program) collect(ctx context.Context, r pack.Release, file, out string) error {
	m, missing, err := r.Collect(ctx, file, out)
	switch {
	case err != nil:
		return err
	case m != nil:
		return p.printRelease(m, out)
	case p.json:
		return cli.JSON(p.std.Out, map[string][]string{"missing": missing})
	}
	return p.say("kept %s; still to come: %s", file, strings.Join(missing, ", "))
}
