package firstnode

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestMain is also the program that tests start and end.
func TestMain(m *testing.M) {
	if os.Getenv("NOX_LAB_PROGRAM") != "1" {
		os.Exit(m.Run())
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Print(".")
	for {
		<-asked
		if len(os.Args) < 2 || os.Args[1] != "stubborn" {
			return
		}
	}
}
