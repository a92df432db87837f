package pgproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/semel-go/semel/itest/must"
)

// peers has a client and a server that send the messages of a test, with the proxy between client and server. The
// startup of the connection is complete.
type peers struct {
	t      *testing.T
	proxy  *Proxy
	client *pgproto3.Frontend
	server *pgproto3.Backend
	hangUp func() // closes the client's connection
}

// listen starts a proxy in front of a listener that the test serves itself.
func listen(t *testing.T) (*Proxy, net.Listener) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return Start(t, "postgres://me@"+l.Addr().String()+"/db?sslmode=disable"), l
}

func dial(t *testing.T, to net.Addr) net.Conn {
	t.Helper()
	c := must.Get(net.Dial("tcp", to.String()))(t)
	t.Cleanup(func() { _ = c.Close() })
	must.OK(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return c
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c := must.Get(l.Accept())(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newPeers(t *testing.T) *peers {
	t.Helper()
	proxy, l := listen(t)
	client := dial(t, proxy.listener.Addr())
	p := &peers{t: t, proxy: proxy, client: pgproto3.NewFrontend(client, client), hangUp: func() { _ = client.Close() }}
	p.send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "me"}})
	server := accept(t, l)
	p.server = pgproto3.NewBackend(server, server)
	must.Get(p.server.ReceiveStartupMessage())(t)
	p.answer(&pgproto3.AuthenticationOk{}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	p.expectClient("AuthenticationOk", "ReadyForQuery")
	return p
}

func (p *peers) send(messages ...pgproto3.FrontendMessage) {
	p.t.Helper()
	for _, m := range messages {
		p.client.Send(m)
	}
	must.OK(p.t, p.client.Flush())
}

func (p *peers) answer(messages ...pgproto3.BackendMessage) {
	p.t.Helper()
	for _, m := range messages {
		p.server.Send(m)
	}
	must.OK(p.t, p.server.Flush())
}

// expectClient checks the names of the messages that the client receives. "end" means the end of the connection.
func (p *peers) expectClient(want ...string) {
	p.t.Helper()
	p.expectMessages("client", want, func() (any, error) { return p.client.Receive() })
}

// expectServer checks the names of the messages that the server receives.
func (p *peers) expectServer(want ...string) {
	p.t.Helper()
	p.expectMessages("server", want, func() (any, error) { return p.server.Receive() })
}

func (p *peers) expectMessages(who string, want []string, receive func() (any, error)) {
	p.t.Helper()
	for i, w := range want {
		m, err := receive()
		got := name(m)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			got, err = "end", nil
		}
		if err != nil || got != w {
			p.t.Fatalf("the %s's message %d is %s (%v), want %s", who, i+1, got, err, w)
		}
	}
}

func name(m any) string {
	switch m := m.(type) {
	case *pgproto3.CommandComplete:
		return string(m.CommandTag)
	case *pgproto3.ErrorResponse:
		return "error"
	case nil:
		return "nothing"
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3.")
	}
}

// run returns the messages of the extended protocol for one unnamed statement.
func run(sql string) []pgproto3.FrontendMessage {
	return []pgproto3.FrontendMessage{&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{}}
}

func pipeline(statements ...string) []pgproto3.FrontendMessage {
	var all []pgproto3.FrontendMessage
	for _, s := range statements {
		all = append(all, run(s)...)
	}
	return append(all, &pgproto3.Sync{})
}

// runReplies returns the server's replies to the messages of the function run.
func runReplies(tag string) []pgproto3.BackendMessage {
	return []pgproto3.BackendMessage{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.CommandComplete{CommandTag: []byte(tag)}}
}

func ready() pgproto3.BackendMessage { return &pgproto3.ReadyForQuery{TxStatus: 'I'} }

var ran = []string{"Parse", "Bind", "Execute"}

func TestTheReplyToACommitInAPipelineIsCutAndNothingBeforeIt(t *testing.T) {
	p := newPeers(t)
	rule := p.proxy.CutReply(Commit)
	p.send(pipeline("insert into t values (1)", "commit", "commit")...)
	p.expectServer(slices.Concat(ran, ran, ran, []string{"Sync"})...)
	p.answer(append(slices.Concat(runReplies("INSERT 0 1"), runReplies("COMMIT"), runReplies("COMMIT")), ready())...)
	p.expectClient("ParseComplete", "BindComplete", "INSERT 0 1", "ParseComplete", "BindComplete", "end")
	p.expectServer("end")
	if rule.Hits() != 1 {
		t.Errorf("the rule met %d messages, want 1", rule.Hits())
	}
}

func TestACommitIsCutBeforeItIsForwarded(t *testing.T) {
	t.Run("in the extended protocol", func(t *testing.T) {
		p := newPeers(t)
		p.proxy.CutRequest(Commit)
		p.send(pipeline("insert into t values (1)", "commit")...)
		p.expectServer("Parse", "Bind", "Execute", "Parse", "Bind", "end")
		p.expectClient("end")
	})
	t.Run("in the simple protocol", func(t *testing.T) {
		p := newPeers(t)
		p.proxy.CutRequest(Commit)
		p.send(&pgproto3.Query{String: "insert into t values ('commit')"})
		p.expectServer("Query")
		p.answer(runReplies("INSERT 0 1")[2], ready())
		p.expectClient("INSERT 0 1", "ReadyForQuery")
		p.send(&pgproto3.Query{String: "/* the end */ COMMIT"})
		p.expectServer("end")
		p.expectClient("end")
	})
}

func TestACommitThatIsCutInFlightReachesTheServerWhoseReplyReachesNobody(t *testing.T) {
	p := newPeers(t)
	p.proxy.CutInFlight(Commit)
	p.send(pipeline("commit")...)
	p.expectClient("end")
	p.expectServer("Parse", "Bind", "Execute", "end")
}

func TestTheServerCanAnswerACommitThatIsCutInFlightOnlyWhenNothingIsPassedOn(t *testing.T) {
	c := newConnection(&Proxy{}, 1, nil, "")
	c.toServer = make(chan chunk) // the test does not need the messages to the server
	gathered, obeyed := []byte("commit"), make(chan bool)
	go func() { obeyed <- c.obey(&Rule{do: cutAfter}, Request, &gathered) }()
	if k := <-c.toServer; string(k.bytes) != "commit" {
		t.Fatalf("the server got %q", k.bytes)
	}
	c.push(c.toClient, chunk{bytes: []byte("done")})
	if k := <-c.toServer; !k.last || <-obeyed {
		t.Error("the server got more than the commit")
	}
	if k := <-c.toClient; !k.last {
		t.Errorf("the client got %q", k.bytes)
	}
}

func TestAPreparedStatementIsKnownByItsNameUntilItIsClosed(t *testing.T) {
	p := newPeers(t)
	var seen []string
	p.proxy.Watch(func(m Message) {
		if m.Direction == Request {
			seen = append(seen, m.SQL)
		}
	})
	execute := []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "s", DestinationPortal: "p"}, &pgproto3.Execute{Portal: "p"}}
	p.send(&pgproto3.Parse{Name: "s", Query: "select 1"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"})
	p.send(append(execute, &pgproto3.Close{ObjectType: 'S', Name: "s"}, &pgproto3.Parse{Name: "s", Query: "select 2"})...)
	p.send(append(execute, &pgproto3.Close{ObjectType: 'S', Name: "s"})...)
	p.send(append(execute, &pgproto3.Sync{})...)
	p.expectServer("Parse", "Describe", "Bind", "Execute", "Close", "Parse", "Bind", "Execute", "Close", "Bind", "Execute", "Sync")
	if want := []string{"select 1", "select 2", ""}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}

func TestRepliesAreKnownBehindAnErrorThatSkippedSomeRequests(t *testing.T) {
	p := newPeers(t)
	p.proxy.CutReply(Containing("three"))
	p.send(append(run("one"), &pgproto3.Flush{})...)
	p.expectServer(append(ran, "Flush")...)
	p.answer(&pgproto3.ErrorResponse{Code: "42601"})
	p.expectClient("error")
	p.send(append(run("skipped"), &pgproto3.Query{String: "skipped too"}, &pgproto3.Sync{})...)
	p.expectServer(append(ran, "Query", "Sync")...)
	p.answer(ready())
	p.expectClient("ReadyForQuery")
	p.send(pipeline("three")...)
	p.expectServer(append(ran, "Sync")...)
	p.answer(runReplies("THREE")...)
	p.expectClient("ParseComplete", "BindComplete", "end")
	if n := p.proxy.Counts().RoundTrips; n != 3 {
		t.Errorf("counted %d round trips, want 3", n)
	}
}

func TestEachStatementOfOneQueryHasItsReply(t *testing.T) {
	p := newPeers(t)
	p.proxy.CutReply(Commit)
	p.send(&pgproto3.Query{String: "insert into t values (';'); -- commit;\ncommit; select 1"})
	p.expectServer("Query")
	p.answer(runReplies("INSERT 0 1")[2], runReplies("COMMIT")[2], runReplies("SELECT 1")[2], ready())
	p.expectClient("INSERT 0 1", "end")
}

func TestTheErrorThatAnswersACommitIsAReplyToIt(t *testing.T) {
	p := newPeers(t)
	p.proxy.CutReply(func(m Message) bool { return Commit(m) && m.Failed() })
	p.send(pipeline("commit")...)
	p.expectServer("Parse", "Bind", "Execute", "Sync")
	p.answer(&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.ErrorResponse{Code: "23505"}, ready())
	p.expectClient("ParseComplete", "BindComplete", "end")
}

func TestWhatIsHeldGoesOnWhenTheRuleIsRemoved(t *testing.T) {
	p := newPeers(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, reply := p.proxy.HoldRequest(Commit), p.proxy.HoldReply(Commit)
	p.send(pipeline("commit")...)
	must.OK(t, request.Wait(ctx))
	request.Remove()
	p.expectServer("Parse", "Bind", "Execute", "Sync")
	p.answer(append(runReplies("COMMIT"), ready())...)
	must.OK(t, reply.Wait(ctx))
	p.expectClient("ParseComplete", "BindComplete")
	reply.Remove()
	reply.Remove()
	p.expectClient("COMMIT", "ReadyForQuery")
	if request.Hits() != 1 || reply.Hits() != 1 {
		t.Errorf("held %d requests and %d replies, want 1 and 1", request.Hits(), reply.Hits())
	}
}

func TestOnlyTheNthOfTheChosenMessagesIsMeant(t *testing.T) {
	second := Nth(2, Commit)
	for i, sql := range []string{"commit", "select 1", "commit", "commit"} {
		if got, want := second(Message{SQL: sql}), i == 2; got != want {
			t.Errorf("message %d: got %v, want %v", i+1, got, want)
		}
	}
}
