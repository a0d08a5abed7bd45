/** SQL of the account's own limits, for account `a`; null without any. */
export const OVERRIDES = `(SELECT jsonb_object_agg(l.name, l.value) FROM account_limits l WHERE l.account_id = a.id) AS overrides`;
