// Who is signed in, where anybody is asked.

import { Popover } from "./popover.tsx";
import { session, signOut } from "./session.ts";
import { announce } from "./notice.ts";

export function AccountMenu() {
  const current = session.value;
  if (!current || current.name === null || (current.is_open && !current.can_sign_out)) return null;
  const { name, rights, tenants, has_tenants: hasTenants, can_sign_out: canSignOut } = current;
  return (
    <Popover title="Who is signed in" align="right" testId="account" className="account" label={<span class="truncated">{name}</span>}>
      {() => (
        <div class="account-panel">
          <p>
            Signed in as <strong>{name}</strong>
          </p>
          <p class="muted">May {(rights ?? []).join(", ")}</p>
          {hasTenants && <p class="muted">Tenant {(tenants ?? []).join(", ")}</p>}
          {canSignOut ? (
            <button
              type="button"
              class="secondary-button"
              data-testid="sign-out"
              onClick={() => signOut().catch(() => announce("The server does not answer: you are still signed in"))}
            >
              Sign out
            </button>
          ) : (
            <p class="muted">Your browser, or a proxy before the server, says so with each request.</p>
          )}
        </div>
      )}
    </Popover>
  );
}
