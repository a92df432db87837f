-- name: old table
select quote_ident(n.nspname) || '.' || quote_ident(c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = to_regclass($1::text) and c.relkind in ('r', 'p', 'v', 'm', 'f');

-- name: old columns
select a.attname, quote_ident(a.attname), format_type(a.atttypid, -1),
  case when a.atttypid in ('varchar'::regtype, 'bpchar'::regtype) and a.atttypmod > 0 then a.atttypmod - 4 else 0 end,
  a.attnotnull and not a.atthasdef and a.attidentity = '',
  coalesce(l.collisdeterministic, true),
  coalesce(' collate ' || quote_ident(n.nspname) || '.' || quote_ident(l.collname), ''),
  t.typnamespace = 'pg_catalog'::regnamespace::oid or t.typtype = 'e'
from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_collation l on l.oid = a.attcollation left join pg_namespace n on n.oid = l.collnamespace
where a.attrelid = to_regclass($1::text) and a.attnum > 0 and not a.attisdropped
order by a.attnum;

-- name: old key
select exists (
  select 1 from pg_index x where x.indrelid = to_regclass($1::text)
  and x.indisunique and x.indisvalid and x.indimmediate and x.indpred is null and x.indexprs is null
  and $2::text = (
    select string_agg(a.attname, E'\n' order by a.attname collate "C")
    from unnest(x.indkey::int2[]) with ordinality k (n, i) join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.n
    where k.i <= x.indnkeyatts)),
  has_table_privilege(to_regclass($1::text), 'select') and has_table_privilege(to_regclass($1::text), 'insert')
  and has_table_privilege(to_regclass($1::text), 'delete');

-- Old unlogged returns, for a user's table and its partitions, the statements that make unlogged
-- tables logged. A crash of the server empties unlogged tables.

-- name: old unlogged
select coalesce(string_agg('alter table ' || quote_ident(n.nspname) || '.' || quote_ident(c.relname) || ' set logged', '; ' order by n.nspname, c.relname), '')
from (select to_regclass($1::text) as id union select relid from pg_partition_tree(to_regclass($1::text))) t
join pg_class c on c.oid = t.id join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and c.relpersistence <> 'p';

-- name: setup name
select name from {prefix}setup where hash = $1;

-- name: seed first
select '', {value} from {table} t
where ({where}) and t.{id} is not null
order by t.{id} limit $1;

-- name: seed next
select '', {value} from {table} t
where ({where}) and t.{id} operator(pg_catalog.>) {last} and $3::text is not null
order by t.{id} limit $1;
