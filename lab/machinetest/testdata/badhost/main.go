// Command badhost is a successor of mesh-host that cannot live. The linker says
// how (`-X main.how=…`).
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var how string

func init() {
	if how == "panics in init" && len(os.Args) > 1 && os.Args[1] == "run" {
		panic("the last words of one that panics in init")
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println("mesh-host 9.9.9 linux/any")
		return
	}
	fmt.Println("the last words of one that", how)
	switch how {
	case "exits at once":
		os.Exit(1)
	case "hangs before it is ready":
		sleep()
	case "hangs and hears no signal":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGABRT)
		sleep()
	case "is deaf once it is ready":
		ready()
		sleep()
	case "panics in init":
	case "ends with success":
		ready()
	case "crashes once it is ready":
		ready()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		sleep()
	default:
		panic("this program does not know how to fail so: " + how)
	}
}

// sleep is for ever. (An empty select would be a deadlock that Go sees.)
func sleep() {
	for {
		time.Sleep(time.Hour)
	}
}

// ready is sd_notify(3).
func ready() {
	c, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer c.Close()
	_, _ = c.Write([]byte("READY=1"))
}
