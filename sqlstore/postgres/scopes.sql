-- name: scope
select number from {prefix}scopes where consumer = $1 and source = $2 and generation = $3;

-- name: scopes
select number, source from {prefix}scopes where consumer = $1 order by number;

-- A new scope starts with the low-water mark of the other scopes. Markers of its messages may have
-- been written under a previous identity or another name of the source, and removed since.

-- name: new scope
insert into {prefix}scopes (consumer, source, generation, low)
select $1, $2, $3, (select max(o.low) from {prefix}scopes o where o.consumer = $1) on conflict do nothing;

-- Source scopes returns the existing scopes for some sources of a consumer, and finds each by its
-- name. New scopes inserts the missing scopes in a fixed order, so that two processes that insert
-- the same scopes do not deadlock.

-- name: source scopes
select a.k, (select s.number from {prefix}scopes s where s.consumer = $1 and s.source = a.source and s.generation = $3)
from unnest($2::bytea[]) with ordinality a (source, k);

-- name: new scopes
insert into {prefix}scopes (consumer, source, generation, low)
select $1, a.source, $3, (select max(o.low) from {prefix}scopes o where o.consumer = $1)
from unnest($2::bytea[]) a (source) order by a.source on conflict do nothing;

-- name: position
select "offset", length, "check" from {prefix}positions where consumer = $1 and lane = $2;

-- name: save position
insert into {prefix}positions (consumer, lane, "offset", length, "check", at)
values ($1, $2, $3, $4, $5, clock_timestamp())
on conflict (consumer, lane) do update
set "offset" = excluded."offset", length = excluded.length, "check" = excluded."check", at = excluded.at;

-- name: keep position
insert into {prefix}positions (consumer, lane, "offset", length, "check", at)
values ($1, $2, $3, $4, $5, clock_timestamp())
on conflict (consumer, lane) do nothing;

-- name: forget position
delete from {prefix}positions where consumer = $1 and lane = $2;

-- The offsets of a broker's lanes are positions without a length.
-- name: offsets
select a.k, p."offset" from unnest($2::text[]) with ordinality a (lane, k)
join {prefix}positions p on p.consumer = $1 and p.lane = a.lane;

-- Advance offsets locks rows in the order of their names, so that two transactions that advance the
-- same lanes do not deadlock.
-- name: advance offsets
with stood as (
  select a.*, coalesce(p."offset", -1) as before
  from unnest($2::text[], $3::bigint[], $4::bigint[]) with ordinality a (lane, reached, least, k)
  left join {prefix}positions p on p.consumer = $1 and p.lane = a.lane
), moved as (
  insert into {prefix}positions as p (consumer, lane, "offset", length, "check", at)
  select $1, lane, reached, 0, '', clock_timestamp() from stood
  where reached > before and not exists (select 1 from stood s where s.before < s.least)
  order by lane
  on conflict (consumer, lane) do update set "offset" = excluded."offset", at = excluded.at
  where p."offset" < excluded."offset"
)
select k, before from stood;

-- name: marker
select m.outcome, (extract(epoch from m.at) * 1000)::bigint, m.version, m.sum from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = $1 and s.source = $2 and m.id = $3 order by s.generation desc limit 1;

-- Known markers returns the markers of an id under each source of a consumer, and whether a result
-- is stored. It does one look-up for each source.

-- name: known markers
select s.source, s.generation, m.outcome, (extract(epoch from m.at) * 1000)::bigint, m.version, m.sum,
  (exists (select 1 from {prefix}results r where r.scope = m.scope and r.id = m.id))::int
from {prefix}scopes s join {prefix}markers m on m.scope = s.number and m.id = $2
where s.consumer = $1 order by s.source, s.generation limit 1000;

-- name: clock
select (extract(epoch from clock_timestamp()) * 1000)::bigint;

-- Dated returns the table with daily partitions that has the markers of a consumer, if there is
-- one.

-- name: dated
select number, kind from {prefix}dated where consumer = $1;

-- Moving returns the table to which the markers of a consumer are being moved, if there is one. Its
-- record has the name of the consumer behind a byte with which no name begins, so that statements
-- that do not know of moves do not find the record.

-- name: moving
select number, kind from {prefix}dated where consumer = '\x01'::bytea || $1::bytea;

-- name: lock dated
select pg_advisory_xact_lock(hashtextextended('{prefix}dated', 0));

-- name: new dated
insert into {prefix}dated (consumer, kind, low_day, high_day, low, high)
select $1, $2::text, w.day, w.day, {prefix}day_bound($2::text, w.day), {prefix}day_bound($2::text, w.day)
from (select (clock_timestamp() at time zone 'UTC')::date - $3::int as day) w returning number;

-- name: undated markers
select exists (select 1 from {prefix}scopes s cross join lateral (select 1 from {prefix}markers m where m.scope = s.number limit 1) m where s.consumer = $1);

-- Dated rows returns those of the given rows whose markers are in a table with daily partitions, or
-- are being moved to one.

-- name: dated rows
select i.number, s.consumer, d.kind, d.number
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
join {prefix}inbox i on i.number = a.n join {prefix}scopes s on s.number = i.scope
join {prefix}dated d on d.consumer in (s.consumer, '\x01'::bytea || s.consumer)
where a.k between 0 and 1000000 and a.n > 0;
