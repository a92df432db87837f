package services

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/itest/must"
)

// programs is a PostgreSQL installation and the user that runs the servers. PostgreSQL refuses to run as root, so root
// runs the servers as the user postgres.
type programs struct {
	bin   string
	root  string
	owner *syscall.Credential
}

// Folder returns the folder for the data of servers, and for templates whose creation takes long.
func Folder() string {
	if folder := os.Getenv("SEMEL_SERVICES"); folder != "" {
		return folder
	}
	return filepath.Join(os.TempDir(), "semel-services")
}

func findPrograms(t testing.TB) programs {
	t.Helper()
	p := programs{bin: bin(), root: Folder()}
	if p.bin == "" {
		t.Fatal("PostgreSQL's programs are missing: this test starts its own server. Install them with scripts/services up postgres, or set SEMEL_POSTGRES_BIN to the folder of initdb")
	}
	if os.Geteuid() == 0 {
		p.owner = credential(t)
	}
	must.OK(t, os.MkdirAll(p.root, 0o755))
	return p
}

func bin() string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(dirs)
	dirs = append([]string{os.Getenv("SEMEL_POSTGRES_BIN")}, dirs...)
	if path, err := osexec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); dir != "" && err == nil {
			return dir
		}
	}
	return ""
}

func credential(t testing.TB) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("root can't run PostgreSQL and there is no user postgres: %v", err)
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	must.OK(t, errors.Join(errUID, errGID))
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// run runs a program and waits until it ends. The program belongs to PostgreSQL or to the system.
func (p programs) run(t testing.TB, program string, args ...string) {
	t.Helper()
	if own := filepath.Join(p.bin, program); fileExists(own) {
		program = own
	}
	c := osexec.Command(program, args...)
	c.Dir = p.root
	c.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
}

// copyTemplate copies a data folder that initdb has created before, because initdb takes a second, and a copy takes a
// tenth of a second.
func (p programs) copyTemplate(t testing.TB, to string) {
	t.Helper()
	template := filepath.Join(p.root, "template"+strings.ReplaceAll(p.bin, "/", "-"))
	lock := p.lockTemplate(t)
	defer func() { _ = lock.Close() }()
	if !fileExists(filepath.Join(template, "data", "PG_VERSION")) {
		p.makeTemplate(t, template)
	}
	p.run(t, "cp", "-R", filepath.Join(template, "data"), to)
}

// lockTemplate takes a lock so that only one process at a time creates templates. Closing the file releases
// the lock.
func (p programs) lockTemplate(t testing.TB) *os.File {
	t.Helper()
	lock := must.Get(os.OpenFile(filepath.Join(p.root, "template.lock"), os.O_CREATE|os.O_RDWR, 0o644))(t)
	must.OK(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	return lock
}

func (p programs) makeTemplate(t testing.TB, template string) {
	t.Helper()
	p.makeFolder(t, template)
	fresh := filepath.Join(template, "data.new")
	must.OK(t, os.RemoveAll(fresh))
	p.run(t, "initdb", "-D", fresh, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	must.OK(t, os.Rename(fresh, filepath.Join(template, "data")))
}

// privateFolder creates a folder whose name contains this process's id. privateFolder also removes the folders of test
// processes that were killed.
func (p programs) privateFolder(t testing.TB) string {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(p.root, "private-*-*"))
	for _, dir := range left {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), "private-%d-", &pid); err == nil && isDead(pid) && isDead(postmaster(dir)) {
			_ = os.RemoveAll(dir)
		}
	}
	dir := must.Get(os.MkdirTemp(p.root, fmt.Sprintf("private-%d-", os.Getpid())))(t)
	p.makeFolder(t, dir)
	return dir
}

func (p programs) makeFolder(t testing.TB, dir string) {
	t.Helper()
	err := os.MkdirAll(dir, 0o700)
	if err == nil && p.owner != nil {
		err = os.Chown(dir, int(p.owner.Uid), int(p.owner.Gid))
	}
	must.OK(t, err)
}

// postmaster returns the process id in the data folder of a server, or 0 if the folder contains no process id.
func postmaster(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

// isDead reports whether no process with this process id exists. The id 0 counts as dead.
func isDead(pid int) bool { return pid == 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
