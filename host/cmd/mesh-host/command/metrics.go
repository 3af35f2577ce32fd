package command

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nox-mesh/nox-mesh/host/internal/service"
	"github.com/nox-mesh/nox-mesh/internal/durable"
	"github.com/nox-mesh/nox-mesh/internal/metrics"
)

func (p *program) metrics() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "metrics",
		Short: "Print figures about this host for Prometheus",
		Long: `Print what the host knows about itself in the text format of Prometheus. Nothing
is looked at for it: resources are as the last pass left them.

For the textfile collector of node_exporter, run this by a timer, every minute:

  mesh-host metrics --out /var/lib/prometheus/node-exporter/mesh-host.prom

which replaces the file in one go. What else can speak HTTP over a unix socket
gets the same from the service:

  curl --unix-socket /run/nox-mesh/host.sock http://host/v1/metrics

Where no service runs, mesh_host_up is 0 and what a service counts is left out.`,
		Example: "  mesh-host metrics\n  mesh-host metrics --out /var/lib/prometheus/node-exporter/mesh-host.prom",
		RunE: func(c *cobra.Command, _ []string) error {
			return p.ask(c.Context(), func(h service.Host) error {
				families, err := h.Metrics(c.Context())
				if err != nil {
					return err
				}
				if out != "" {
					var text bytes.Buffer
					if err := metrics.Write(&text, families); err != nil {
						return err
					}
					if err := durable.WriteFile(out, text.Bytes(), 0o644); err != nil {
						return fmt.Errorf("cannot write metrics: %w", err)
					}
					return nil
				}
				return p.print(families, func() error { return metrics.Write(p.std.Out, families) })
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `FILE`, which is the old or the new at any moment")
	return c
}
