/** A profile of the caller's own that is none. The message names the option and the path. */
export class ProfileError extends TypeError {}
