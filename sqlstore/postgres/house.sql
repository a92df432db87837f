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
