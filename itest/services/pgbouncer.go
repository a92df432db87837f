package services

import (
	"context"
	"fmt"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/itest/must"
)

// StartPgBouncer starts a PgBouncer with pool_mode transaction for one test. The parameter dsn is the connection string
// of the server behind PgBouncer, or of a proxy. StartPgBouncer returns the connection string of the same database
// through PgBouncer. When StartPgBouncer returns, PgBouncer listens but has not connected to the server yet. PgBouncer
// ends with the test.
func StartPgBouncer(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("%q is not a connection address: %v", dsn, err)
	}
	in := findPrograms(t)
	p := newPrivate(t, in)
	t.Cleanup(p.remove)
	configuration := filepath.Join(p.folder, "conf")
	for name, text := range map[string]string{configuration: bouncerSettings(u, p.folder, p.port), filepath.Join(p.folder, "users"): `"postgres" ""`} {
		must.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
	c := osexec.Command(pgBouncer(t), configuration)
	c.Dir = in.root
	c.SysProcAttr = childAttributes(in.owner, syscall.SIGQUIT)
	p.process = startLogged(t, c, p.folder)
	u.Host = p.Address()
	admin := *u
	admin.Path = "pgbouncer"
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = waitUntil(ctx, func() bool { return p.process.hasEnded() || exec(ctx, admin.String(), "show version") == nil })
	if err != nil || p.process.hasEnded() {
		t.Fatalf("PgBouncer in %s does not listen; the end of its log:\n%s", p.folder, logEnd(p.folder))
	}
	return u.String()
}

func bouncerSettings(server *url.URL, folder string, port int) string {
	return strings.Join([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s", server.Hostname(), server.Port()),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		"listen_port = " + strconv.Itoa(port),
		"unix_socket_dir =",
		"auth_type = trust",
		"auth_file = " + filepath.Join(folder, "users"),
		"pool_mode = transaction",
		"ignore_startup_parameters = extra_float_digits",
		"admin_users = postgres",
		"server_login_retry = 0.1",
	}, "\n") + "\n"
}

func pgBouncer(t testing.TB) string {
	t.Helper()
	found, err := osexec.LookPath("pgbouncer")
	if err != nil {
		found, err = osexec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		t.Fatal("PgBouncer is missing: this test starts its own. Install it with scripts/services up pgbouncer")
	}
	return found
}
