// Command testrun runs the parts of `make test` or `make verify` in parallel, and then lists
// how long each part took. Each part is a target of the Makefile.
//
//	testrun TARGET…
//
// If a part prints the output of `go test -json`, testrun shows its failures and one line for
// each package.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/worker"
)

// part is a target of the Makefile and its result.
type part struct {
	name      string
	took, cpu time.Duration
	err       error
	tests     *results
}

func main() {
	// An interrupt of testrun also reaches the parts, which are in the same process group and then stop their servers
	// and processes. Until they have ended, testrun must read their output, because a part would be killed when it
	// writes to a closed pipe.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	begun := time.Now()
	parts := make([]*part, len(os.Args)-1)
	out := &lines{to: os.Stdout}
	var all worker.Group
	for i, name := range os.Args[1:] {
		parts[i] = &part{name: name, tests: newResults(out)}
		all.Go(func() { parts[i].run(out) })
	}
	all.Wait()
	report(out, parts, time.Since(begun))
	for _, p := range parts {
		if p.err != nil {
			os.Exit(1)
		}
	}
}

// run starts make for the target and reads the output line by line.
func (p *part) run(out *lines) {
	begun := time.Now()
	p.err = p.make(out)
	p.took = time.Since(begun)
	if p.err != nil {
		out.print("FAIL %s: %v", p.name, p.err)
	}
}

func (p *part) make(out *lines) error {
	program := os.Getenv("MAKE")
	if program == "" {
		program = "make"
	}
	command := exec.Command(program, "--no-print-directory", p.name)
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	command.Stdout, command.Stderr = write, write
	err = command.Start()
	write.Close() // the command has its own copy
	if err != nil {
		return err
	}
	err = p.follow(read, out)
	if waited := command.Wait(); waited != nil {
		err = waited
	}
	p.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return err
}

func (p *part) follow(output io.Reader, out *lines) error {
	for from := bufio.NewReader(output); ; {
		line, err := from.ReadString('\n')
		if line != "" && !p.tests.take(line) {
			out.print("%s: %s", p.name, strings.TrimRight(line, "\n"))
		}
		if err == io.EOF {
			p.tests.rest("") // output of a package that was killed
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lines prints the output of several parts without mixing their lines.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, format+"\n", args...)
}
