-- Steps are written after the end of their claim, in the same transaction.

-- name: claim steps
update {prefix}inbox set steps = ?2,
  started = case when ?3 then 0 else started end, finished = case when ?3 then 0 else finished end
where number = ?1;
