package services

import (
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/semel-go/semel/itest/must"
)

var (
	//go:embed kafka/server.properties
	serverProperties string
	//go:embed kafka/log4j2.properties
	logProperties []byte
	//go:embed kafka/pom.xml
	pom []byte
)

// kafkaPrograms has the paths of Java, of Kafka's jars, and of the folder for all private servers.
type kafkaPrograms struct {
	java, jars, root string
}

func findKafka(t testing.TB) kafkaPrograms {
	t.Helper()
	p := kafkaPrograms{java: "java", jars: jarsFolder(t), root: os.Getenv("SEMEL_SERVICES")}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		p.java = filepath.Join(home, "bin", "java")
	}
	if _, err := osexec.LookPath(p.java); err != nil || !fileExists(p.jars) {
		t.Fatalf("Java or Kafka's jars in %s are missing: this test starts its own broker. Install them with scripts/services up kafka", p.jars)
	}
	if p.root == "" {
		p.root = filepath.Join(os.TempDir(), "semel-services")
	}
	must.OK(t, os.MkdirAll(p.root, 0o755))
	return p
}

// jarsFolder returns the folder with Kafka's jars. The script scripts/services makes Maven copy the jars into
// this folder.
func jarsFolder(t testing.TB) string {
	t.Helper()
	if own := os.Getenv("SEMEL_KAFKA_JARS"); own != "" {
		return own
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	var project struct {
		Dependencies []struct {
			Artifact string `xml:"artifactId"`
			Version  string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	must.OK(t, xml.Unmarshal(pom, &project))
	return filepath.Join(cache, "semel", "kafka-"+project.Dependencies[0].Version)
}

// command returns a command that runs one of Kafka's classes. The files of the command are in the parameter folder.
func (p kafkaPrograms) command(folder string, args ...string) *osexec.Cmd {
	all := append([]string{"-Xmx256m", "-Xms64m", "-XX:+UseSerialGC", "-cp", filepath.Join(p.jars, "*"),
		"-Dlog4j2.configurationFile=log4j2.properties"}, append(p.archiveOption(), args...)...)
	c := osexec.Command(p.java, all...)
	c.Dir = folder
	return c
}

// archiveOption returns the option for a Java class archive, which halves the start time of Kafka. The result is
// empty if scripts/services has not stored an archive next to Kafka's jar files.
func (p kafkaPrograms) archiveOption() []string {
	archive := filepath.Join(p.jars, "classes.jsa")
	if !fileExists(archive) {
		return nil
	}
	return []string{"-XX:SharedArchiveFile=" + archive}
}

func (p kafkaPrograms) start(t testing.TB, folder string) *process {
	t.Helper()
	must.OK(t, os.WriteFile(filepath.Join(folder, "log4j2.properties"), logProperties, 0o644))
	c := p.command(folder, "kafka.Kafka", "server.properties")
	c.SysProcAttr = childAttributes(nil, syscall.SIGKILL)
	return startLogged(t, c, folder)
}

const clusterID = "semel-privateAAAAAAAAA"

// copyFormatted copies the data folder of a node from a formatted template. Formatting a new folder would
// start Java and take seconds.
func (p kafkaPrograms) copyFormatted(t testing.TB, to string, id int) {
	t.Helper()
	template := filepath.Join(p.root, "template-"+filepath.Base(p.jars))
	lock := programs{root: p.root}.lockTemplate(t)
	defer func() { _ = lock.Close() }()
	if !fileExists(filepath.Join(template, "data")) {
		p.makeFormatted(t, template)
	}
	must.OK(t, os.CopyFS(to, os.DirFS(filepath.Join(template, "data"))))
	var unique [16]byte
	_, _ = rand.Read(unique[:])
	text := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n", clusterID, id, base64.RawURLEncoding.EncodeToString(unique[:]))
	must.OK(t, os.WriteFile(filepath.Join(to, "meta.properties"), []byte(text), 0o644))
}

func (p kafkaPrograms) makeFormatted(t testing.TB, template string) {
	t.Helper()
	must.OK(t, os.RemoveAll(template))
	b := &Broker{privateServer: privateServer{t: t, folder: template, port: freePort(t)}, in: p}
	must.OK(t, os.MkdirAll(filepath.Join(template, "new"), 0o755))
	b.configure(1, b.port+1, []string{fmt.Sprintf("1@127.0.0.1:%d", b.port+1)}, []string{"log.dirs=" + filepath.Join(template, "new")})
	c := p.command(template, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", "server.properties")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("format a data folder of Kafka: %v\n%s", err, out)
	}
	must.OK(t, os.Rename(filepath.Join(template, "new"), filepath.Join(template, "data")))
}
