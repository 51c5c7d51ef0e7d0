// Filters that readers saved, beside the presets that come with the page.

import { useEffect, useState } from "preact/hooks";
import "../styles/notes-sheet.css";
import { addFilters, loadSavedViews, savedFilters, saveFilters } from "./saved-views.ts";
import { SavedEntry } from "./saved-views-panel.tsx";
import { mayWrite } from "./session.ts";
import { view } from "./store.ts";

export function SavedFilters() {
  useEffect(loadSavedViews, []);
  const [name, setName] = useState("");
  const [refused, setRefused] = useState<string>();
  return (
    <div data-testid="saved-filters">
      {savedFilters.value.map((saved) => (
        <SavedEntry key={saved.id} saved={saved} onOpen={() => addFilters(saved)} />
      ))}
      {view.value.filters !== "" && mayWrite.value && (
        <form
          class="sheet-form"
          onSubmit={async (event) => {
            event.preventDefault();
            const refusal = await saveFilters(name.trim());
            setRefused(refusal);
            if (refusal === undefined) setName("");
          }}
        >
          <label>
            Save these filters as
            <input value={name} maxLength={100} required data-testid="filters-name" onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          {refused !== undefined && (
            <p class="sheet-refusal" role="alert">
              {refused}
            </p>
          )}
          <button type="submit" class="secondary-button" data-testid="filters-save">
            Save
          </button>
        </form>
      )}
    </div>
  );
}
