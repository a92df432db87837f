-- Rows that wait, by the moment from which they may be claimed: for one in
-- progress that is the end of its lease.
create index {name}inbox_claimable on {prefix}inbox (scope, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS');

-- Stand refuses an end of claims of which not all stood, with an error of its own,
-- so that a COMMIT that was sent with it fails.
create function {prefix}stand(stood bigint, wanted bigint) returns bigint language plpgsql as $function$
begin
  if stood <> wanted then
    raise exception using errcode = 'SM002', message = stood || ' of ' || wanted || ' claims stand';
  end if;
  return stood;
end
$function$;
