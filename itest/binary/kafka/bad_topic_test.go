//go:build unix

package kafka

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// output collects the output of a process.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer // guarded by mutex
}

func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(p)
}

// errorLines returns the log lines with level error.
func (o *output) errorLines() (lines []string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for line := range strings.Lines(o.text.String()) {
		if strings.Contains(line, `"level":"ERROR"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// badTopicProcess is a process with two consumers. One consumer reads a topic that does not exist or that it may not
// read; the other consumer reads a good topic.
type badTopicProcess struct {
	fixture
	name, says, listen string
	cmd                *exec.Cmd
	log                *output
}

// startProcess starts the process. The parameter onFailure is the setting on_failure of the consumer with the bad
// topic.
func (s fixture) startProcess(t *testing.T, name, topic, onFailure, says string) badTopicProcess {
	t.Helper()
	address, err := proof.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	b := badTopicProcess{fixture: s, name: name, says: says, listen: address, log: &output{}}
	s.policy(t, name+".yaml", "", s.consumer(name, "payments", ""), s.consumer(name+"-bad", "bad", "on_failure: "+onFailure))
	text, err := os.ReadFile(filepath.Join(s.dir, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("listen: %q\nsources:\n  bad: {kafka: {brokers: \"${KAFKA_BROKERS}\", topics: %s}}", address, topic)
	s.write(t, name+".yaml", strings.Replace(string(text), "sources:", more, 1))
	b.cmd = s.command("run", "--config", name+".yaml")
	b.cmd.Stderr = b.log
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.cmd.Process.Kill() })
	return b
}

// get sends a GET request to the process and returns the body of the response.
func (b badTopicProcess) get(path string) string {
	answer, err := http.Get("http://" + b.listen + path)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(answer.Body)
	return answer.Status + "\n" + string(said)
}

// metric reports whether a consumer's metric has a given value.
func (b badTopicProcess) metric(name, consumer string, value int) bool {
	return strings.Contains(b.get("/metrics"), fmt.Sprintf("%s{consumer=%q} %d\n", name, b.fixture.name(consumer), value))
}

// waitReported waits until the good consumer has applied its messages and the process reports the bad consumer.
func (b badTopicProcess) waitReported(t *testing.T) {
	waitUntil(t, "the effects of the good consumer", func() bool { all, _ := b.countEntries(t, b.name); return all == 20 })
	waitUntil(t, "an error of the bad consumer, and that it lasts", func() bool { return len(b.log.errorLines()) >= 2 })
	failed := b.log.errorLines()
	for i, says := range []string{"source does not work; nothing is fetched", "source still does not work; nothing is fetched"} {
		if !strings.Contains(failed[i], says) || !strings.Contains(failed[i], b.says) || !strings.Contains(failed[i], `"consumer":"`+b.fixture.name(b.name+"-bad")+`"`) {
			t.Errorf("error %d is %s", i+1, failed[i])
		}
	}
	if ready := b.get("/readyz"); !strings.HasPrefix(ready, "503") || !strings.Contains(ready, b.says) {
		t.Errorf("readiness says %s", ready)
	}
	if live := b.get("/livez"); !strings.HasPrefix(live, "200") {
		t.Errorf("liveness says %s", live)
	}
	for consumer, ready := range map[string]int{b.name: 1, b.name + "-bad": 0} {
		if !b.metric("semel_ready", consumer, ready) || !b.metric("semel_alive", consumer, 1) {
			t.Errorf("the metrics of %s are %s", consumer, b.get("/metrics"))
		}
	}
}

// stop sends SIGTERM and waits until the process has finished its messages and ended.
func (b badTopicProcess) stop(t *testing.T) {
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("a stop is no failure: %v\n%s", err, &b.log.text)
	}
}

// An operator may create the topic or grant access later. A bad topic therefore ends neither its consumer nor the
// process, with any value of on_failure.
func TestABadTopicOfOneConsumerIsAnErrorAndHoldsUpNoOther(t *testing.T) {
	cluster := services.StartKafka(t, services.KafkaOptions{Settings: []string{
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "allow.everyone.if.no.acl.found=true"}})
	s := newFixture(t, 1)
	s.brokers = cluster.Brokers()
	s.topic = services.Topic(t, s.brokers, 1)
	secret, missing := services.Topic(t, s.brokers, 1), s.topic+"-missing"
	s.produce(t, s.makePayments(1, 20)...)
	client := s.client(t)
	defer client.Close()
	admin := kadm.NewClient(client)
	denied, err := admin.CreateACLs(t.Context(), kadm.NewACLs().Topics(secret).Deny("User:ANONYMOUS").DenyHosts().Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral))
	if err != nil || len(denied) != 1 || denied[0].Err != nil {
		t.Fatal(denied, err)
	}
	absent, unread := "topic "+missing+" does not exist", "may not read topic "+secret
	all := []badTopicProcess{
		s.startProcess(t, "absent-continue", missing, "continue", absent), s.startProcess(t, "absent-exit", missing, "exit", absent),
		s.startProcess(t, "denied-continue", secret, "continue", unread), s.startProcess(t, "denied-exit", secret, "exit", unread),
	}
	for _, b := range all {
		t.Run(b.name, b.waitReported)
	}
	t.Run("each_goes_on_when_the_cause_is_mended", func(t *testing.T) {
		if made, err := admin.CreateTopic(t.Context(), 1, -1, nil, missing); err != nil || made.Err != nil {
			t.Fatal(made.Err, err)
		}
		if gone, err := admin.DeleteACLs(t.Context(), kadm.NewACLs().Topics(secret).Deny("User:ANONYMOUS").DenyHosts().Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral)); err != nil {
			t.Fatal(gone, err)
		}
		for _, b := range all {
			waitUntil(t, b.name+" is ready", func() bool { return b.metric("semel_ready", b.name+"-bad", 1) })
			b.stop(t)
		}
	})
}
