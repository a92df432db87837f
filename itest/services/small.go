package services

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
)

// The size of a small file system, about five hundred pages.
const smallSize = "4m"

// A command that mounts a small file system in a private namespace and then runs the command that follows. The file
// system disappears when the last process of the namespace ends.
const mountAnd = `mount -t tmpfs -o size=` + smallSize + `,mode=700,uid=$1,gid=$2 semel "$3" && shift 3 && exec "$@"`

// limitedCommand returns the words that must precede a program on a command line. The program then runs as the user who
// owns the server, and a small file system is mounted at the given folder. The result is nil if the machine does not
// allow to mount a file system: this needs root, or a kernel with unprivileged namespaces.
func (p programs) limitedCommand(t testing.TB, folder string) []string {
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

// Small returns the folder of the small file system, or "" if the machine does not allow mounting one. The
// content of the folder is lost when the server ends.
func (s *Server) Small() string {
	if s.within == nil {
		return ""
	}
	return s.small()
}

// ReportedDisk has statements that make PostgreSQL report a full disk for each insert into a table. A trigger raises the
// error, so no disk is filled.
type ReportedDisk struct {
	// Setup creates the trigger, which is off until Fill turns it on. Empty turns it off again.
	Setup, Fill, Empty string
}

// NewReportedDisk returns the statements for a table.
func NewReportedDisk(table string) ReportedDisk {
	empty := "alter table " + table + " disable trigger full_disk;\n"
	return ReportedDisk{Setup: `create function full_disk() returns trigger language plpgsql as
$$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
create trigger full_disk before insert on ` + table + ` for each row execute function full_disk();
` + empty, Fill: "alter table " + table + " enable trigger full_disk", Empty: empty}
}

func (s *Server) small() string { return filepath.Join(s.folder, "small") }
