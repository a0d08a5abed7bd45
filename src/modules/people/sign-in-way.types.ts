import type { Html } from '../../platform/pages/html.js';
import type { SessionCaller } from '../auth/access.types.js';

/** A link by which a user signs out of another service. @stability preview */
export interface SignOutLink {
  label: string;
  url: string;
}

/** A way of signing in besides password and API key. @stability preview */
export interface SignInWay {
  /** The button of the sign-in page posts to `/login/{name}`, with the field `next`. */
  name: string;
  label: string;
  /** Returns the reason why nobody can sign in this way right now, for people; null if they can. The page waits for it. */
  problem(): Promise<string | null>;
  /** Returns a link to sign out there too, for the page after a sign-out here; null without one. Must be fast. */
  signOut?(person: SessionCaller): Promise<SignOutLink | null>;
  /**
   * Returns a function that renders its part of a user's account page, from the hidden input of forms and the relative path to the root.
   */
  accountPart(person: SessionCaller): Promise<(token: Html, root: string) => Html>;
}
