package services

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
)

// smallSize is the size of a small file system: some five hundred pages.
const smallSize = "4m"

// mountAnd mounts a small file system, seen by nobody else and gone with its
// last process, and becomes the command that follows.
const mountAnd = `mount -t tmpfs -o size=` + smallSize + `,mode=700,uid=$1,gid=$2 semel "$3" && shift 3 && exec "$@"`

// within is the beginning of a command that runs a program as the server's
// owner where a small file system is at folder; nil if that is not allowed here.
// It takes root, or a kernel that lets everyone have namespaces of their own.
func (p programs) within(t testing.TB, folder string) []string {
	t.Helper()
	p.makeFolder(t, folder)
	var own []string
	if p.owner != nil {
		uid, gid := fmt.Sprint(p.owner.Uid), fmt.Sprint(p.owner.Gid)
		own = []string{"unshare", "--mount", "--", "sh", "-c", mountAnd, "sh", uid, gid, folder,
			"setpriv", "--reuid=" + uid, "--regid=" + gid, "--clear-groups", "--pdeathsig=QUIT", "--"}
	} else {
		own = []string{"unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-c", mountAnd, "sh", "0", "0", folder,
			"unshare", "--user", fmt.Sprint("--map-user=", os.Getuid()), fmt.Sprint("--map-group=", os.Getgid()), "--",
			"setpriv", "--pdeathsig=QUIT", "--"}
	}
	if out, err := osexec.Command(own[0], append(own[1:], "true")...).CombinedOutput(); err != nil {
		t.Logf("no small file system can be mounted here: %v: %s", err, out)
		return nil
	}
	return own
}

// Small is the folder of the small file system that [Options] asked for. It is
// empty where nobody may mount one. What is in it is lost when the server ends.
func (s *Server) Small() string {
	if s.within == nil {
		return ""
	}
	return s.small()
}

func (s *Server) small() string { return filepath.Join(s.folder, "small") }
