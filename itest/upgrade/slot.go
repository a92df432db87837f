//go:build unix

package upgrade

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// slot runs one reading process at a time, alternately with one release and with the other release.
type slot struct {
	proof *Proof
	name  string
	// All deliveries of the slot's feed, if the slot has a feed of its own.
	deliveries []delivery
	// The release that runs, or that runs next.
	release Release
	process *processes.Process
}

// errNewer means that a release refused the tables of a newer release and said so in the expected text.
var errNewer = errors.New("the schema is a newer release's")

// A text in the error of a release that finds unknown parts in the schema.
const unknown = "which this release does not know"

// command returns a command of the slot's release. Each release has a log of its own.
func (s *slot) command(args ...string) processes.Command {
	var json []string
	if s.release.Name == Pinned[:7] { // the earlier release has another flag
		json = []string{"--json"}
	}
	return processes.Command{Binary: s.release.Binary, Folder: s.proof.Folder,
		Policy: s.name + ".yaml", Log: s.log(s.release), Summary: s.name + ".json",
		Env: append(s.proof.Store.Env(s.name), "RELEASE="+s.release.Name), Args: args, JSON: json}
}

func (s *slot) log(r Release) string { return s.name + "-" + r.Name + ".log" }

func (s *slot) writePolicy(follow bool) error {
	return os.WriteFile(s.proof.Path(s.name+".yaml"), s.release.text(s.proof, s.name, follow), 0o644)
}

// start starts the slot's release. The release logs single messages, from which the ledger is computed.
func (s *slot) start(follow bool) error {
	if err := s.writePolicy(follow); err != nil {
		return err
	}
	p, err := s.command("run", "--log-level", "debug").Start()
	s.process = p
	return err
}

// end runs the slot's release until it has read all its input.
func (s *slot) end(args ...string) error {
	if err := s.writePolicy(false); err != nil {
		return err
	}
	var err error
	if s.process, err = s.command(args...).Start(); err != nil {
		return err
	}
	if err := s.process.Wait(0); err != nil {
		return err
	}
	if s.process.Status.ExitStatus() != 0 {
		return fmt.Errorf("the last run of %s by %s: %v", s.name, s.release.Name, s.process.Status)
	}
	return nil
}

// migrate makes the slot's release upgrade the tables. If the release reports that the tables belong to a newer
// release, migrate returns errNewer.
func (s *slot) migrate() error {
	if err := s.writePolicy(false); err != nil {
		return err
	}
	said, err := s.call("migrate", "up").CombinedOutput()
	if err == nil {
		return nil
	}
	if strings.Contains(string(said), unknown) {
		return errNewer
	}
	return fmt.Errorf("semel migrate up of %s: %w\n%s", s.release.Name, err, said)
}

// call returns a command of the slot's release that ends by itself.
func (s *slot) call(args ...string) *exec.Cmd {
	c := s.command()
	call := exec.Command(c.Binary, append(args, "--config", c.Policy)...)
	call.Dir, call.Env = c.Folder, append(os.Environ(), c.Env...)
	return call
}
