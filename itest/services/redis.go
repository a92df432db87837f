package services

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
)

// Redis is a Redis server or Sentinel that only one test uses. The port of the server stays the same after a restart.
// The methods of Redis fail the test on errors.
type Redis struct {
	privateServer
	settings []string
}

// StartRedis starts a server for one test and returns when the server answers. A setting is written as "name value".
// When the test ends, the server ends and its data are removed. The server also ends if the test's process dies.
// Without a setting for persistence, a restart loses all data.
func StartRedis(t testing.TB, settings ...string) *Redis {
	t.Helper()
	r := newRedis(t, append([]string{"save \"\"", "appendonly no"}, settings...))
	r.Start()
	return r
}

func newRedis(t testing.TB, settings []string) *Redis {
	t.Helper()
	r := &Redis{privateServer: newPrivate(t, programs{root: Folder()}), settings: settings}
	t.Cleanup(r.remove)
	return r
}

// Start starts a server that was stopped or killed, and returns when the server answers.
func (r *Redis) Start() {
	r.t.Helper()
	r.launch()
	r.Await("PING", "+PONG")
}

// StartLoading starts the server and returns while the server is loading its data. Loading must take long
// enough, for example because of the setting key-load-delay.
func (r *Redis) StartLoading() {
	r.t.Helper()
	r.launch()
	r.Await("PING", "-LOADING")
}

func (r *Redis) launch() {
	r.t.Helper()
	arguments := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(r.port), "--dir", r.folder}
	for _, s := range r.settings {
		name, value, _ := strings.Cut(s, " ")
		arguments = append(arguments, "--"+name, value)
	}
	r.run(arguments...)
}

func (r *Redis) run(arguments ...string) {
	r.t.Helper()
	program, err := osexec.LookPath("redis-server")
	if err != nil {
		r.t.Fatal("redis-server is missing: this test starts its own server. Install it with scripts/services install redis")
	}
	c := osexec.Command(program, arguments...)
	c.Dir, c.SysProcAttr = r.folder, childAttributes(nil, syscall.SIGKILL)
	r.process = startLogged(r.t, c, r.folder)
}

// KillAndForget calls the function meanwhile and then ends the server like a machine failure. The append-only file
// loses everything that was written during the call of meanwhile.
func (r *Redis) KillAndForget(meanwhile func()) {
	r.t.Helper()
	file, kept := filepath.Join(r.folder, "appendonlydir"), filepath.Join(r.folder, "kept")
	_ = os.RemoveAll(kept)
	must.OK(r.t, os.CopyFS(kept, os.DirFS(file)))
	meanwhile()
	r.process.kill()
	must.OK(r.t, os.RemoveAll(file))
	must.OK(r.t, os.Rename(kept, file))
}

// Await repeats a command until the answer contains the text want.
func (r *Redis) Await(command, want string) {
	r.t.Helper()
	var said string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if r.process.hasEnded() {
			r.t.Fatalf("redis-server has ended; its log is %s", filepath.Join(r.folder, "log"))
		}
		var err error
		if said, err = r.ask(command); err == nil && strings.Contains(said, want) {
			return
		}
	}
	r.t.Fatalf("the answer to %s is %q, which does not contain %q", command, said, want)
}

// ask sends a command as a line of text, and returns the answer that arrives within a short time.
func (r *Redis) ask(command string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.Address())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := fmt.Fprintf(conn, "%s\r\nQUIT\r\n", command); err != nil {
		return "", err
	}
	var all strings.Builder
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
	}
	return all.String(), nil
}

// StartRedisCluster starts a cluster of three masters for one test.
func StartRedisCluster(t testing.TB, settings ...string) []*Redis {
	t.Helper()
	var all []*Redis
	create := []string{"--cluster", "create"}
	for range 3 {
		all = append(all, StartRedis(t, append(slices.Clone(settings), "cluster-enabled yes", "cluster-node-timeout 2000", fmt.Sprintf("cluster-port %d", freePort(t)))...))
		create = append(create, all[len(all)-1].Address())
	}
	out, err := osexec.CommandContext(t.Context(), "redis-cli", append(create, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli: %v: %s", err, out)
	}
	for _, r := range all {
		r.Await("CLUSTER INFO", "cluster_state:ok")
	}
	return all
}

// RedisPair is a master with a replica. Three Sentinels monitor the master.
type RedisPair struct {
	Master, Replica *Redis
	Sentinels       []*Redis
}

// SentinelSet is the name of the master in the Sentinels' configuration.
const SentinelSet = "keys"

// StartRedisPair starts a master with a replica for one test. If the master has not answered for a second, the
// Sentinels promote the replica.
func StartRedisPair(t testing.TB, settings ...string) *RedisPair {
	t.Helper()
	p := &RedisPair{Master: StartRedis(t, settings...)}
	p.Replica = StartRedis(t, append(slices.Clone(settings), fmt.Sprintf("replicaof 127.0.0.1 %d", p.Master.port))...)
	p.Master.Await("INFO replication", "state=online")
	for range 3 {
		s := newRedis(t, nil)
		file := filepath.Join(s.folder, "sentinel.conf")
		conf := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s 127.0.0.1 %[4]d 2\nsentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 5000\n",
			s.port, s.folder, SentinelSet, p.Master.port)
		must.OK(t, os.WriteFile(file, []byte(conf), 0o644))
		s.run(file, "--sentinel")
		s.Await("PING", "+PONG")
		p.Sentinels = append(p.Sentinels, s)
	}
	for _, s := range p.Sentinels {
		s.Await("SENTINEL CKQUORUM "+SentinelSet, "+OK 3 usable Sentinels")
		s.Await("SENTINEL REPLICAS "+SentinelSet, strconv.Itoa(p.Replica.port))
	}
	return p
}
