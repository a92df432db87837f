-- name: derivations
select consumer, generation, derivation, coalesce(former, -1), retired, (extract(epoch from first_at) * 1000)::bigint
from {prefix}derivations where consumer = $1 or length($1::bytea) = 0 order by consumer, generation;

-- name: add derivation
insert into {prefix}derivations (consumer, generation, derivation, former, retired, first_at)
values ($1, $2, $3, nullif($4::bigint, -1), false, clock_timestamp())
on conflict do nothing;

-- name: retire derivation
update {prefix}derivations set retired = $1 where consumer = $2 and generation = $3 and retired <> $1;

-- name: forget former
update {prefix}derivations set former = null where consumer = $1 and former = $2;

-- name: owner
select owner from {prefix}owners where consumer = $1;

-- name: new owner
insert into {prefix}owners (consumer, owner, changed_at) values ($1, $2, clock_timestamp())
on conflict do nothing;

-- name: change owner
update {prefix}owners set owner = $1, changed_at = clock_timestamp() where consumer = $2 and owner = $3;

-- New markers wait writes the markers of conflicts with a previous identity, because these
-- conflicts have no markers.

-- name: new markers wait
insert into {prefix}markers (scope, id, outcome, version, sum, long_id, at)
select i.scope, i.id, 2, i.version, i.sum, i.long_id, clock_timestamp()
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint) join {prefix}inbox i on i.number = a.n
where a.k between 0 and 1000000 and a.n > 0 and i.reason = $2 and length(i.conflict) > 0
order by i.scope, i.id
on conflict (scope, id) do nothing;
