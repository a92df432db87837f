-- name: scope
select number from {prefix}scopes where consumer = $1 and source = $2 and generation = $3;

-- name: new scope
insert into {prefix}scopes (consumer, source, generation) values ($1, $2, $3) on conflict do nothing;

-- name: position
select "offset", length, "check" from {prefix}positions where consumer = $1 and lane = $2;

-- name: save position
insert into {prefix}positions (consumer, lane, "offset", length, "check", at)
values ($1, $2, $3, $4, $5, clock_timestamp())
on conflict (consumer, lane) do update
set "offset" = excluded."offset", length = excluded.length, "check" = excluded."check", at = excluded.at;

-- name: forget position
delete from {prefix}positions where consumer = $1 and lane = $2;

-- name: old table
select quote_ident(n.nspname) || '.' || quote_ident(c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = to_regclass($1::text) and c.relkind in ('r', 'p', 'v', 'm', 'f');

-- name: old columns
select a.attname, quote_ident(a.attname), format_type(a.atttypid, -1),
  case when a.atttypid in ('varchar'::regtype, 'bpchar'::regtype) and a.atttypmod > 0 then a.atttypmod - 4 else 0 end,
  a.attnotnull and not a.atthasdef and a.attidentity = '',
  coalesce(l.collisdeterministic, true),
  coalesce(' collate ' || quote_ident(n.nspname) || '.' || quote_ident(l.collname), '')
from pg_attribute a left join pg_collation l on l.oid = a.attcollation left join pg_namespace n on n.oid = l.collnamespace
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

-- name: setup name
select name from {prefix}setup where hash = $1;

-- name: seed first
select '', {value} from {table} t
where ({where}) and t.{id} is not null
order by t.{id} limit $1;

-- name: seed next
select '', {value} from {table} t
where ({where}) and t.{id} > {last} and $3::text is not null
order by t.{id} limit $1;

-- name: setup
insert into {prefix}setup (hash, name, at) values ($1, $2, clock_timestamp()) on conflict do nothing;

-- name: migrations
do $do$
begin
  perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{prefix}migrations', 0));
  if pg_catalog.to_regnamespace('{schema}') is null then
    create schema {schema};
  end if;
  if pg_catalog.to_regclass('{prefix}migrations') is null then
    create table {prefix}migrations (
      version integer primary key,
      name text not null,
      checksum text not null,
      at timestamptz not null
    );
  end if;
end
$do$;

-- name: migrated
insert into {prefix}migrations (version, name, checksum, at)
values ($1, $2, $3, clock_timestamp()) on conflict do nothing;

-- name: has migrations
select to_regclass('{prefix}migrations') is not null;

-- name: applied
select version, name, checksum, (extract(epoch from at) * 1000)::bigint from {prefix}migrations order by version;

-- name: lint
select what from (
  select 'the database stores text as ' || current_setting('server_encoding') || ', not as UTF8' as what
  where current_setting('server_encoding') <> 'UTF8'
  union all
  select '{prefix}markers has no primary key (scope, id)' where not exists (
    select 1 from pg_index x where x.indrelid = to_regclass('{prefix}markers') and x.indisprimary and x.indisvalid
    and array(select a.attname::text from unnest(x.indkey) with ordinality k (n, i)
      join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.n order by k.i) = array['scope', 'id'])
  union all
  select '{prefix}inbox has no unique key (scope, id, conflict)' where not exists (
    select 1 from pg_index x where x.indrelid = to_regclass('{prefix}inbox') and x.indisunique and x.indisvalid
    and x.indpred is null
    and array(select a.attname::text from unnest(x.indkey) with ordinality k (n, i)
      join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.n order by k.i) = array['scope', 'id', 'conflict'])
  union all
  select '{prefix}guard has no deferred foreign key' where not exists (
    select 1 from pg_constraint c where c.conrelid = to_regclass('{prefix}guard') and c.contype = 'f'
    and c.condeferrable and c.condeferred and c.convalidated)
  union all
  select '{prefix}acts can be changed: a trigger is missing or off' where 2 <> (
    select count(*) from pg_trigger t where t.tgrelid = to_regclass('{prefix}acts')
    and t.tgname in ('{name}acts_stay', '{name}acts_remain') and t.tgenabled in ('O', 'A'))
) faults;
