package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"
)

// raceOptions disables the one-second wait of the race detector at the end of each process.
const raceOptions = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	check(os.Setenv("GORACE", raceOptions))
	testscript.Main(m, map[string]func(){
		"semel":  main,
		"sqlite": query,
		"bytes":  writeBytes,
	})
}

// TestScripts runs the scripts in testdata/script. If the environment variable UPDATE_SCRIPTS is set, the
// test rewrites the texts that the scripts compare.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", raceOptions)
			example, err := filepath.Abs("../../examples/payments")
			env.Setenv("EXAMPLE", example)
			env.Setenv("PORT", freePort(t))
			return err
		},
		RequireUniqueNames: true,
		Cmds:               map[string]func(*testscript.TestScript, bool, []string){"exits": requireExitCode, "number": number, "figure": figure, "screen": screen, "same": same, "answers": startEndpoint, "calls": compareCalls, "until": waitUntil, "says": waitForOutput, "scrape": scrape, "certify": certify, "secured": requestHTTPS},
	})
}

// The script command "exits CODE COMMAND..." runs a command that must exit with CODE.
func requireExitCode(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, not %s", code, want)
	}
}

// The script command "number NAME FILTER..." sets the variable NAME to a row number. The filters of `semel
// messages ls` must choose exactly one row.
func number(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("semel", append([]string{"messages", "ls", "--config", "semel.yaml", "-o", "json"}, args[1:]...)...))
	var list struct{ Rows []struct{ Number int64 } }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	if len(list.Rows) != 1 {
		ts.Fatalf("%d rows, not one", len(list.Rows))
	}
	ts.Setenv(args[0], strconv.FormatInt(list.Rows[0].Number, 10))
}

// query implements the program `sqlite DATABASE STATEMENT...`, which prints the rows of each statement.
func query() {
	db, err := sql.Open("sqlite", "file:"+os.Args[1]+"?_pragma=busy_timeout(5000)")
	check(err)
	for _, statement := range os.Args[2:] {
		check(printRows(db, statement))
	}
	check(db.Close())
}

func printRows(db *sql.DB, statement string) error {
	rows, err := db.Query(statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		var texts []string
		for _, v := range values {
			texts = append(texts, v.String)
		}
		fmt.Println(strings.Join(texts, "|"))
	}
	return rows.Err()
}

// writeBytes implements the program `bytes FILE PART...`, which appends the parts to a file. A part is a Go
// string without its quotes. N*PART repeats a part N times.
func writeBytes() {
	f, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(err)
	for _, part := range os.Args[2:] {
		times, text, repeated := strings.Cut(part, "*")
		n, err := strconv.Atoi(times)
		if !repeated || err != nil {
			n, text = 1, part
		}
		plain, err := strconv.Unquote("`" + text + "`")
		if strings.Contains(text, `\`) {
			plain, err = strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
		}
		check(err)
		_, err = f.WriteString(strings.Repeat(plain, n))
		check(err)
	}
	check(f.Close())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
