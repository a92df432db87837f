//go:build unix

package security

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/twmb/franz-go/pkg/kadm"
)

const secured = `version: 1
stores:
  shop: {sqlite: {path: shop.db}, migrate: true}
sources:
  orders:
    kafka:
      brokers: "${KAFKA_BROKERS}"
      topics: ["${TOPIC}"]
      group: "${GROUP}"
      tls: {ca: ca.pem}
      sasl: {scram_sha_512: {user: reader, PASSWORD}}
consumers:
  billing:
    from: orders
    store: shop
    strategy: marker
    identity: {id: "header:id"}
    handler:
      sql: {params: {id: "header:id"}, statements: ["select :id where 1 = 0"]}
`

// withPolicy runs the binary three times: with a password from the environment, with a password from a file,
// and with a wrong password.
func withPolicy(t *testing.T, s *site) {
	folder := t.TempDir()
	binary := must.Get(processes.Build(t.Context(), folder))(t)
	authority := must.Get(os.ReadFile(s.ca.path("ca.pem")))(t)
	write := func(name, text string) {
		must.OK(t, os.WriteFile(folder+"/"+name, []byte(text), 0o600))
	}
	write("ca.pem", string(authority))
	write("password", password+"\n")
	write("environment.yaml", strings.Replace(secured, "PASSWORD", `password: "${KAFKA_PASSWORD}"`, 1))
	write("file.yaml", strings.Replace(secured, "PASSWORD", `password_file: password`, 1))
	topic := s.topic()
	s.allow(kadm.NewACLs().Topics(topic), kadm.OpRead)
	command := func(policy, secret string, args ...string) *exec.Cmd {
		group := topics.Name()
		s.allow(kadm.NewACLs().Groups(group), kadm.OpRead)
		c := exec.CommandContext(t.Context(), binary, append([]string{"run", "--config", policy, "-o", "json"}, args...)...)
		c.Dir, c.Env = folder, append(os.Environ(), "KAFKA_BROKERS="+s.cluster.BrokersAt(bySecret)[0], "TOPIC="+topic, "GROUP="+group, "KAFKA_PASSWORD="+secret)
		return c
	}
	for policy, want := range map[string]int64{"environment.yaml": 3, "file.yaml": 3} {
		_ = os.Remove(folder + "/shop.db")
		var sum struct{ Consumers map[string]semel.Counts }
		out, err := command(policy, password, "--exit-when-idle", "2s").Output()
		if err == nil {
			err = json.Unmarshal(out, &sum)
		}
		if c := sum.Consumers["billing"]; err != nil || c.Applied != want {
			t.Errorf("%s: %v, %+v", policy, err, c)
		}
	}
	expectWrongPassword(t, command("environment.yaml", "wrong horse"))
}

// expectWrongPassword waits until the binary reports that the password is wrong.
func expectWrongPassword(t *testing.T, c *exec.Cmd) {
	t.Helper()
	log, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	must.OK(t, err)
	said, buffer := "", make([]byte, 4096)
	for !strings.Contains(said, "the brokers refused the user or its password") {
		n, err := log.Read(buffer)
		said += string(buffer[:n])
		if err != nil {
			break
		}
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
	if !strings.Contains(said, "the brokers refused the user or its password") || strings.Contains(said, "wrong horse") {
		t.Errorf("semel run says %s", said)
	}
}
