/** The person behind a browser that is signed in. */
export interface SignedIn {
  accountId: string;
  accountName: string;
  isOperator: boolean;
  /** Id of the session's row. Each sign-in has a new one. */
  sessionId: string;
}
