package pgproxy

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/semel-go/semel/itest/must"
)

func TestStatementsAreSplitWhereAServerSplitsThem(t *testing.T) {
	for sql, want := range map[string][]string{
		"":                        nil,
		" ; -- nothing\n;":        nil,
		"select 1":                {"select 1"},
		"select 1;select 2;":      {"select 1", "select 2"},
		"select ';' ; select 2":   {"select ';'", "select 2"},
		"select 'it''s;'; x":      {"select 'it''s;'", "x"},
		`select E'\';'; x`:        {`select E'\';'`, "x"},
		`select date';'; x`:       {"select date';'", "x"},
		`select ";"; x`:           {`select ";"`, "x"},
		"do $$ a; b $$; x":        {"do $$ a; b $$", "x"},
		"do $a1$ $$ ; $a1$; x":    {"do $a1$ $$ ; $a1$", "x"},
		"select $1; select a$b$c": {"select $1", "select a$b$c"},
		"a /* ; /* ; */ ; */ b;x": {"a   b", "x"},
		"select 'open; x":         {"select 'open; x"},
		"/* open ; x":             nil,
	} {
		if got := splitStatements(sql); !slices.Equal(got, want) {
			t.Errorf("%q is split into %q, want %q", sql, got, want)
		}
	}
}

func TestCommitIsTheStatementAndNotTheWord(t *testing.T) {
	for sql, want := range map[string]bool{
		"commit": true, "COMMIT WORK": true, "end": true, " -- x\ncommit and chain;": true, "select 1; commit": true,
		"commit prepared 'a'": false, "select 'commit'": false, "rollback": false, "savepoint commit": false, "": false,
	} {
		if Commit(Message{SQL: sql}) != want {
			t.Errorf("Commit returned %v for %q", !want, sql)
		}
	}
}

func TestAWishForEncryptionIsDeclinedAndARequestToCancelPassesThrough(t *testing.T) {
	proxy, l := listen(t)
	client := dial(t, proxy.listener.Addr())
	for _, code := range []uint32{gssRequest, sslRequest} {
		write(t, client, code)
		answer := make([]byte, 1)
		if _, err := io.ReadFull(client, answer); err != nil || answer[0] != 'N' {
			t.Fatalf("the answer to %d is %q (%v), want N", code, answer, err)
		}
	}
	write(t, client, cancelRequest, 7, 8)
	got := make([]byte, 16)
	must.Get(io.ReadFull(accept(t, l), got))(t)
	if process, secret := binary.BigEndian.Uint32(got[8:]), binary.BigEndian.Uint32(got[12:]); process != 7 || secret != 8 {
		t.Errorf("the request to cancel is for %d, %d, want 7, 8", process, secret)
	}
	if n := proxy.Counts().Connections; n != 0 {
		t.Errorf("%d connections are counted, want 0", n)
	}
}

func write(t *testing.T, c net.Conn, words ...uint32) {
	t.Helper()
	b := binary.BigEndian.AppendUint32(nil, uint32(4+4*len(words)))
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	must.Get(c.Write(b))(t)
}

func TestARoundTripIsCountedWhenTheClientWaited(t *testing.T) {
	p := newPeers(t)
	p.send(append(pipeline("one", "two"), pipeline("three")...)...)
	p.expectServer(slices.Concat(ran, ran, []string{"Sync"}, ran, []string{"Sync"})...)
	first := append(slices.Concat(runReplies("ONE"), runReplies("TWO")), ready())
	p.answer(append(append(first, runReplies("THREE")...), ready())...)
	for range 2 * 3 {
		p.receive()
	}
	for range 1 + 3 + 1 {
		p.receive()
	}
	p.send(&pgproto3.Query{String: "four; five"})
	p.expectServer("Query")
	p.answer(runReplies("FOUR")[2], runReplies("FIVE")[2], ready())
	p.expectClient("FOUR", "FIVE", "ReadyForQuery")
	p.send(&pgproto3.Terminate{})
	p.expectServer("Terminate")
	got := p.proxy.Counts()
	want := Counts{Connections: 1, RoundTrips: 2, Statements: 5, Requests: 13, Replies: 14, RequestBytes: got.RequestBytes, ReplyBytes: got.ReplyBytes}
	if got != want || got.RequestBytes == 0 || got.ReplyBytes == 0 {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if one := p.proxy.CountsByConnection()[1]; one != got {
		t.Errorf("connection 1 has %+v, want %+v", one, got)
	}
	p.proxy.ResetCounts()
	if got := p.proxy.Counts(); got != (Counts{}) {
		t.Errorf("after the reset there is %+v", got)
	}
}

func (p *peers) receive() {
	p.t.Helper()
	must.Get(p.client.Receive())(p.t)
}

func TestAFlushThatIsWaitedForIsARoundTrip(t *testing.T) {
	p := newPeers(t)
	p.send(&pgproto3.Parse{Query: "one"}, &pgproto3.Flush{})
	p.expectServer("Parse", "Flush")
	p.answer(&pgproto3.ParseComplete{})
	p.expectClient("ParseComplete")
	p.send(&pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
	p.expectServer("Bind", "Execute", "Sync")
	p.answer(&pgproto3.BindComplete{}, runReplies("ONE")[2], ready())
	p.expectClient("BindComplete", "ONE", "ReadyForQuery")
	if n := p.proxy.Counts().RoundTrips; n != 2 {
		t.Errorf("counted %d round trips, want 2", n)
	}
}

func TestLatencyIsAddedInEachDirection(t *testing.T) {
	p := newPeers(t)
	const way = 5 * time.Millisecond
	p.proxy.Latency(way, way)
	began := time.Now()
	p.send(pipeline("one", "two", "three")...)
	p.expectServer(slices.Concat(ran, ran, ran, []string{"Sync"})...)
	if took := time.Since(began); took < way {
		t.Errorf("the request took %s, want at least %s", took, way)
	}
	p.answer(ready())
	p.expectClient("ReadyForQuery")
	if took := time.Since(began); took < 2*way {
		t.Errorf("the round trip took %s, want at least %s", took, 2*way)
	}
}

func TestAProxyThatRefusesClosesAndCounts(t *testing.T) {
	proxy, _ := listen(t)
	proxy.Refuse(true)
	client := dial(t, proxy.listener.Addr())
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a refused client read %v, want EOF", err)
	}
	if n := proxy.Counts().Refused; n != 1 {
		t.Errorf("%d are counted as refused, want 1", n)
	}
}

func TestAClosedProxyHasClosedItsConnections(t *testing.T) {
	p := newPeers(t)
	p.proxy.Close()
	p.proxy.Close()
	p.expectServer("end")
	if _, err := net.Dial("tcp", p.proxy.listener.Addr().String()); err == nil {
		t.Error("a closed proxy listens")
	}
}

func TestAConnectionStringWithTwoHostsIsRefused(t *testing.T) {
	if p, err := New("postgres://me@127.0.0.1:1,127.0.0.1:2/db"); err == nil {
		p.Close()
		t.Error("New accepted two hosts")
	}
}
