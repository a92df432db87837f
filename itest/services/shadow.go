package services

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/must"
)

// Shadows is the schema that Shadow creates.
const Shadows = "shadows"

// Shadow simulates a hostile role that may create objects in a schema of the search_path. Shadow creates functions and
// operators with the names of all built-in functions and operators that the sources use. PostgreSQL prefers the new
// functions and operators to the built-in ones, because the argument types of the new ones match exactly. Each of the
// new functions and operators raises an error. Shadow returns the connection string with their schema at the end of the
// search_path.
func Shadow(t testing.TB, dsn string, sources ...string) string {
	t.Helper()
	functions, operators := map[string]bool{}, map[string]bool{}
	for _, pattern := range sources {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			text := must.Get(os.ReadFile(name))(t)
			for _, m := range functionForm.FindAllStringSubmatch(string(text), -1) {
				functions[m[1]] = true
			}
			for _, m := range operatorForm.FindAllString(string(text), -1) {
				if usual[m] {
					operators[m] = true
				}
			}
		}
	}
	statements := []string{"create schema " + Shadows, fmt.Sprintf(shadowFunctions, list(functions))}
	for _, o := range slices.Sorted(maps.Keys(operators)) {
		statements = append(statements, fmt.Sprintf(shadowOperator, "'"+o+"'"))
	}
	Exec(t, dsn, statements...)
	return dsn + "&search_path=public," + Shadows
}

// ShadowOwn creates functions like those of Shadow in the schema of Semel's own functions, as if other roles could also
// create objects in Semel's schema.
func ShadowOwn(t testing.TB, dsn, schema string) {
	t.Helper()
	Exec(t, dsn, strings.ReplaceAll(shadowOwn, "{schema}", strings.ReplaceAll(schema, "'", "''")))
}

var (
	functionForm = regexp.MustCompile(`\b([a-z_][a-z0-9_]*)\(`)
	usual        = map[string]bool{"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true, "+": true, "-": true, "*": true, "/": true, "%": true, "||": true, "~": true, "&": true, "|": true, "<<": true, ">>": true, "@>": true}
	operatorForm = regexp.MustCompile(`[-+*/<>=~!@#%^&|?]+`)
)

func list(names map[string]bool) string {
	return "'" + strings.Join(slices.Sorted(maps.Keys(names)), "', '") + "'"
}

const shadowTypes = `array['bool', '"char"', 'name', 'int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'varchar', 'bytea', 'timestamptz', 'timestamp', 'date',
	'interval', 'oid', 'regclass', 'xid', 'jsonb', 'uuid', 'int2[]', 'int8[]', 'text[]', 'name[]', 'bytea[]', 'int2vector']::text[]`

// The pairs of types for which shadowOperator creates operators: two types of one family, a time and a number, and, for
// the operator ||, also a text and any type.
const shadowPairs = `select l, r from pg_catalog.unnest(` + shadowTypes + `) l, pg_catalog.unnest(` + shadowTypes + `) r
	where (l in ('int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'oid', 'regclass', 'xid', 'interval') and r in ('int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'oid', 'regclass', 'xid', 'interval'))
	or (l in ('"char"', 'name', 'text', 'varchar') and r in ('"char"', 'name', 'text', 'varchar'))
	or (l in ('timestamptz', 'timestamp', 'date') and r in ('timestamptz', 'timestamp', 'date', 'interval', 'int4', 'int8'))
	or (l like '%%[]' and r like '%%[]') or l = r`

// shadowOperator creates an operator for pairs of types. No operator is created for pairs that a built-in operator
// takes exactly, because PostgreSQL would find the built-in operator first.
const shadowOperator = `do $do$
declare
	pair record;
	answer text := case when exists (select from pg_catalog.pg_operator p where p.oprname = %[1]s and p.oprresult <> 'bool'::regtype and p.oprleft <> 0) then 'value' else 'test' end;
begin
	for pair in ` + shadowPairs + ` or %[1]s = '||' and (l in ('text', 'name') or r in ('text', 'name')) loop
		continue when exists (select from pg_catalog.pg_operator p where p.oprname = %[1]s and p.oprleft = pair.l::regtype and p.oprright = pair.r::regtype);
		begin
			execute pg_catalog.format('create function shadows.raises_%%s(%%s, %%s) returns %%s language plpgsql immutable as $f$ begin raise exception ''an operator of another schema was called with %%s and %%s''; end $f$',
				answer, pair.l, pair.r, case answer when 'test' then 'bool' else pair.l end, pair.l, pair.r);
		exception when duplicate_function then null;
		end;
		execute pg_catalog.format('create operator shadows.%%s (leftarg = %%s, rightarg = %%s, function = shadows.raises_%%s)', %[1]s, pair.l, pair.r, answer);
	end loop;
end $do$`

// shadowFunctions creates variants of each function: one argument gets each of several types in turn, and the other
// arguments keep the built-in types.
const shadowFunctions = `do $do$
declare
	types constant text[] := ` + shadowTypes + `;
	f record; given text[];
begin
	for f in
		select p.* from pg_catalog.pg_proc p
		where p.proname in (%s) and p.pronamespace = 'pg_catalog'::regnamespace and p.pronargs > 0 and p.prokind in ('f', 'a', 'w')
	loop
		for given in
			select (select pg_catalog.array_agg(case when k = place then l when a::regtype::text like 'any%%' then 'text' when a::regtype::text = '"any"' then 'text' else a::regtype::text end order by k)
				from pg_catalog.unnest(f.proargtypes::oid[]) with ordinality a (a, k))
			from pg_catalog.unnest(types) l, pg_catalog.generate_series(1, f.pronargs) place
		loop
			begin
				execute pg_catalog.format('create function shadows.%%I(%%s) returns %%s language plpgsql immutable as $f$ begin raise exception ''%%s of another schema was called''; end $f$',
					f.proname, pg_catalog.array_to_string(given, ', '), case when f.prorettype::regtype::text ~ '^any|^"any|^record|internal' then 'text' else f.prorettype::regtype::text end, f.proname);
			exception when duplicate_function or feature_not_supported or invalid_function_definition then null;
			end;
		end loop;
	end loop;
end $do$`

const shadowOwn = `do $do$
declare
	types constant text[] := ` + shadowTypes + `;
	f record; given text[];
begin
	for f in select p.* from pg_catalog.pg_proc p
		where p.pronamespace = (select oid from pg_catalog.pg_namespace where nspname = '{schema}') and p.pronargs between 1 and 2 and p.prokind = 'f'
	loop
		for given in
			select array[l] from pg_catalog.unnest(types) l where f.pronargs = 1
			union all
			select array[l, r] from pg_catalog.unnest(types[3:15]) l, pg_catalog.unnest(types[3:15]) r where f.pronargs = 2
		loop
			begin
				execute pg_catalog.format('create function %I.%I(%s) returns %s language plpgsql immutable as $f$ begin raise exception ''an overload of %s was called''; end $f$',
					'{schema}', f.proname, pg_catalog.array_to_string(given, ', '), f.prorettype::regtype::text, f.proname);
			exception when duplicate_function then null;
			end;
		end loop;
	end loop;
end $do$`
