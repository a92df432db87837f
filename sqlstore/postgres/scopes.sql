-- name: scope
select number from {prefix}scopes where consumer = $1 and source = $2 and generation = $3;

-- name: scopes
select number, source from {prefix}scopes where consumer = $1 order by number;

-- A new scope begins at the low-water mark of the others: a former identity, or another name
-- of the source, may have had what is removed.

-- name: new scope
insert into {prefix}scopes (consumer, source, generation, low)
select $1, $2, $3, (select max(o.low) from {prefix}scopes o where o.consumer = $1) on conflict do nothing;

-- Source scopes are those of some sources of a consumer that there are, each looked for by
-- its name; new scopes writes the others, in one order, so that two that write the same do not
-- lock each other out.

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

-- Offsets of lanes of a broker are positions without a length.
-- name: offsets
select a.k, p."offset" from unnest($2::text[]) with ordinality a (lane, k)
join {prefix}positions p on p.consumer = $1 and p.lane = a.lane;

-- Rows are locked in the order of their names, so that two that advance the same lanes
-- do not lock each other out.
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

-- Known markers are those of an id under each source of a consumer, and whether a result is
-- kept of it. There are as many look-ups as the consumer has sources.

-- name: known markers
select s.source, s.generation, m.outcome, (extract(epoch from m.at) * 1000)::bigint, m.version, m.sum,
  (exists (select 1 from {prefix}results r where r.scope = m.scope and r.id = m.id))::int
from {prefix}scopes s join {prefix}markers m on m.scope = s.number and m.id = $2
where s.consumer = $1 order by s.source, s.generation limit 1000;

-- name: clock
select (extract(epoch from clock_timestamp()) * 1000)::bigint;

-- Dated tells whether the markers of a consumer lie in a table of days.

-- name: dated
select number, kind from {prefix}dated where consumer = $1;

-- Moving tells so of one that is being moved there. It stands under its name behind a byte
-- that no name begins with, so that whoever does not know of moves finds none.

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

-- Dated rows returns, of the rows that are asked for, those whose markers are in a table of days or are being moved to one.

-- name: dated rows
select i.number, s.consumer, d.kind, d.number
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
join {prefix}inbox i on i.number = a.n join {prefix}scopes s on s.number = i.scope
join {prefix}dated d on d.consumer in (s.consumer, '\x01'::bytea || s.consumer)
where a.k between 0 and 1000000 and a.n > 0;
