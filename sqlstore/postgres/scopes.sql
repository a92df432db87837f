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
select m.outcome, (extract(epoch from m.at) * 1000)::bigint from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = $1 and s.source = $2 and m.id = $3 order by s.generation desc limit 1;
