package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/recording"
)

// replay passes a recording to the machine of this build and prints the result.
func replay(name string, history bool) int {
	in, err := os.Open(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer in.Close()
	f, err := recording.Read(in)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	}
	fmt.Printf("consumer %q from %s to %s; written because %s\n", f.Consumer, f.From.UTC().Format(time.RFC3339Nano), f.Until.UTC().Format(time.RFC3339Nano), f.Why)
	if this := recording.ThisBuild(); this != f.Build {
		fmt.Printf("another build recorded it: %s; this is %s\n", f.Build, this)
	}
	var each func(recording.Step)
	if history {
		each = print
	}
	r, err := f.Replay(each)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	}
	return tell(r)
}

func print(s recording.Step) {
	fmt.Printf("%d at %v: %s\n", s.Number, s.At, s.Event)
	for _, a := range s.Actions {
		fmt.Printf("    -> %s\n", a)
	}
}

func tell(r recording.Result) (code int) {
	for _, b := range r.Broken {
		code = 1
		fmt.Printf("step %d breaks %s\n", b.Step, b.String())
	}
	switch {
	case r.Panic != "":
		fmt.Printf("step %d panics: %s\n", r.Steps, r.Panic)
		return 1
	case r.Differs != nil:
		fmt.Printf("step %d is decided otherwise, of the event: %s\nrecorded:\n    %s\nreplayed:\n    %s\n", r.Differs.Step, r.Differs.Event,
			strings.Join(r.Differs.Recorded, "\n    "), strings.Join(r.Differs.Replay, "\n    "))
		return 1
	case r.Unended:
		fmt.Printf("step %d had not ended when the recording was written\n", r.Steps)
	}
	fmt.Printf("%d steps are decided as recorded, byte for byte (%d bytes of decisions)\n", r.Steps, r.Bytes)
	if len(r.Broken) == 0 {
		fmt.Println("no law is broken that can be checked with a recording")
	}
	fmt.Printf("at its end, at %v, %s\n", r.Now, recording.Hands(r.Load, r.Now))
	return code
}
