// Semel runs, inspects and repairs message consumers whose effects happen exactly once.
package main

import (
	"context"
	"os"

	"github.com/semel-go/semel/cmd/semel/internal/cli"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], command.Terminal()))
}
