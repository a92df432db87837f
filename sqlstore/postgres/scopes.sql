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

-- name: marker
select m.outcome, (extract(epoch from m.at) * 1000)::bigint from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = $1 and s.source = $2 and m.id = $3 order by s.generation desc limit 1;
