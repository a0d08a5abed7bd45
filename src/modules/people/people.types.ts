/** The person behind a browser that is signed in. */
export interface SignedIn {
  accountId: string;
  accountName: string;
  isOperator: boolean;
  /** Id of the session's row. Each sign-in has a new one. */
  sessionId: string;
  /** The API key that the session began with; null for a password. */
  keyId: string | null;
  /** `accounts.logins_epoch`: logins that the person makes carry it. */
  loginsEpoch: number;
}
